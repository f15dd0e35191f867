"""The 27 items of the TRIPOD+AI reporting guideline, in our words, and where a report answers each.

Collins et al., BMJ 2024;385:e078378. An item that a page of numbers cannot answer says so and why.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Item:
    """One item.

    Args:
        number: 1..27.
        topic: What it is about.
        asks: What a reader should be told.
        where: Section of the page that answers it, if one does.
        answer: How; without a section it begins "Not applicable, because".
    """

    number: int
    topic: str
    asks: str
    where: str | None
    answer: str


_AUTHORS = "Not applicable, because this page reports an analysis; its authors state this"

ITEMS = (
    Item(1, "Title", "Say what was built or tested, for whom and for which outcome.",
         "finding", "Title and first sentence."),
    Item(2, "Abstract", "Summarise the study.",
         "finding", "The finding, in two sentences with the verdict."),
    Item(3, "Background", "Explain the clinical setting, the people it is for, known inequalities.",
         None, f"{_AUTHORS} in the paper that goes with it."),
    Item(4, "Objectives", "State the aim: development, evaluation or both.",
         "finding", "Evaluation of treatment policies against what the clinicians did."),
    Item(5, "Data", "Name the data sources, what they represent, and their dates.",
         "settings", "Provenance and fingerprint; dates where the provenance holds them."),
    Item(6, "Participants", "Give the setting, who was eligible, and the treatments they had.",
         "flow", "Cohort flow; treatments under the actions."),
    Item(7, "Data preparation", "Describe cleaning and checks, alike for all groups of people.",
         "flow", "Cohort flow and missing values; the rules are in the documentation."),
    Item(8, "Outcome", "Define the outcome, when and how it was assessed.",
         "settings", "The loss, as the provenance defines it; lower is better."),
    Item(9, "Predictors", "List what the model sees, and when it was measured.",
         "balance", "Features and history rule (lag) under balance and settings."),
    Item(10, "Sample size", "Say how many people and events there are, and whether that is enough.",
         "policies", "Decisions, events, effective sample size; the verdict says if it is enough."),
    Item(11, "Missing data", "Say how missing values were handled.",
         "flow", "Share missing by feature; gaps are filled by means learnt in training."),
    Item(12, "Analytical methods", "Describe model, tuning and measures of performance.",
         "evidence", "Estimators with intervals by stay, translation path, calibration, settings."),
    Item(13, "Class imbalance", "Say if and how imbalance of the outcome was treated.",
         None, "Not applicable, because no outcome is classified and nothing is resampled."),
    Item(14, "Fairness", "Say how the model was examined for groups that may be worse off.",
         "subgroups", "Risk and gain by subgroup, each with a verdict."),
    Item(15, "Model output", "Say what the model gives, and how thresholds were chosen.",
         "actions", "Recommended actions, and the support below which none is recommended."),
    Item(16, "Training versus evaluation", "Name differences between both data sets.",
         "settings", "Meant for stays that no policy learnt from; fingerprints tell data apart."),
    Item(17, "Ethical approval", "Name the board that approved the study, or the waiver.",
         None, f"{_AUTHORS}."),
    Item(18, "Open science", "State funding, conflicts, protocol, registration, data and code.",
         "settings", "Versions and fingerprint; the authors state funding and conflicts."),
    Item(19, "Patient and public involvement", "Say how patients or the public took part.",
         None, f"{_AUTHORS}."),
    Item(20, "Participants, results", "Show the flow of people and their characteristics.",
         "flow", "Cohort flow; people by subgroup."),
    Item(21, "Model development, results", "Give numbers of people and events in each analysis.",
         "policies", "Decisions and events under the table; people in each subgroup."),
    Item(22, "Model specification", "Give the model so that others can use it.",
         None, "Not applicable, because the policy is a folder of files, not a formula."),
    Item(23, "Model performance", "Give performance with intervals, also in key groups.",
         "evidence", "All estimators with intervals; subgroups."),
    Item(24, "Model updating", "Give the results of any updating.",
         None, "Not applicable, because nothing was updated after fitting."),
    Item(25, "Interpretation", "Say what the results mean, fairness included.",
         "finding", "The finding, the verdict and its reasons."),
    Item(26, "Limitations", "Name biases, uncertainty, and how far results carry.",
         "sensitivity", "Sensitivity to hidden confounding; reasons of the verdict."),
    Item(27, "Usability", "Say how poor input is handled and what use would need.",
         "notice", "For research only; the policy abstains where support is lacking."),
)  # fmt: skip
