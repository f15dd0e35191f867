"""What people call the columns of a log, in the languages that hospitals write in.

A name is cut into its parts (`hospStayId`, `hosp-stay-id`, `HOSP_STAY_ID` are the same), without
accents. Matching is by the whole name, by one of its parts, or by how it begins or ends.
"""

import re
import unicodedata

STAY = (
    *("icustay_id", "patientunitstayid", "stay_id", "hadm_id", "encounter_id", "admission_id"),
    *("visit_occurrence_id",),
    *("episode_id", "case_id", "stay", "icustay", "hadm", "encounter", "admission", "episode"),
    *("trajectory", "hospitalization", "hospitalisation", "csn", "case"),
    *("aufenthalt", "fall", "fallnr", "fallnummer", "fall_id", "sejour", "estancia", "episodio"),
    *("ricovero", "internacao", "opname", "vistelse", "indlaeggelse"),
)
PATIENT = (
    *("patient_id", "subject_id", "person_id", "patientid", "subjectid", "pat_id", "mrn", "pid"),
    *("patient", "subject", "person", "participant", "usubjid", "subjid", "ptid", "patno"),
    *("patientennr", "patienten_id", "ipp", "nip", "paciente", "paziente", "id_paciente"),
    *("id_paziente", "uniquepid", "unique_id", "pat", "record_id", "record", "id"),
)
STEP = (
    *("step", "charttime", "chart_time", "time", "timestamp", "datetime", "date_time", "hour"),
    *("hours", "day", "days", "visit", "visitnum", "bloc", "block", "window", "epoch"),
    *("interval", "offset", "observationoffset", "minute", "minutes", "week", "month", "period"),
    *("t", "seq", "sequence", "order", "obs_time", "measured_at", "date", "cycle", "round"),
    *("measurement_datetime", "observation_datetime", "recorded_at", "observed_at"),
    *("zeit", "zeitpunkt", "stunde", "tag", "datum", "schritt", "heure", "jour", "temps", "etape"),
    *("hora", "dia", "tiempo", "paso", "fecha", "ora", "giorno", "tempo", "passo", "data_ora"),
    *("tijd", "uur", "dag", "tid", "timme"),
)
ACTION = (
    *("action", "treatment", "treat", "trt", "arm", "therapy", "intervention", "drug"),
    *("medication", "regimen", "exposure", "allocation", "randomised", "randomized", "assigned"),
    *("trtp", "trta", "armcd", "actarm", "tx", "rx", "med", "antibiotic", "a", "treated"),
    *("gabe", "verabreicht", "given", "received", "behandlung", "therapie", "medikament"),
    *("arzneimittel", "massnahme", "traitement", "bras"),
    *("medicament", "tratamiento", "brazo", "farmaco", "trattamento", "braccio", "terapia"),
    *("tratamento", "behandeling", "behandling"),
)
DOSE = (
    *("dose", "dosis", "dosage", "dosi", "posologie", "amount", "fluid", "fluids"),
    *("iv_fluid", "vaso", "vasopressor", "vasopressors", "norepinephrine", "noradrenaline"),
    *("insulin", "heparin", "input_4hourly", "max_dose_vaso", "infusion", "noradrenalin"),
    *("norepinefrin", "noradrenalina", "norepinefrina", "steroid", "steroids", "hydrocortisone"),
    *("hydrocortison", "dexamethasone", "aspirin", "statin", "antibiotika", "antibiotikum"),
    *("insuline", "insulina", "heparine", "eparina", "vasopresor", "vasopresseur"),
)
LOSS = (
    *("loss", "died", "death", "dead", "mortality", "deceased", "hospital_expire_flag"),
    *("expire_flag", "expired", "hospmort", "mort", "hosp_mort", "in_hospital_death"),
    *("death_28d", "mortality_28d", "mortality_90d", "cost", "failure", "relapse", "readmission"),
    *("readmitted", "readmit", "adverse", "event", "outcome", "y", "exitus", "sofa_change"),
    *("verstorben", "tod", "gestorben", "tot", "deces", "decede", "mort", "muerte", "muerto"),
    *("fallecido", "fallecimiento", "decesso", "deceduto", "morto", "morte", "obito"),
    *("overleden", "avliden", "ergebnis", "resultado", "esito", "issue", "mortality_flag"),
    *("vital_status", "vitalstatus", "survival_status", "hospitaldischargestatus"),
    *("discharge_status", "discharge_disposition", "deterioration", "deteriorated", "mort28"),
)
REWARD = (
    *("reward", "survived", "survival", "alive", "survivor", "recovered", "recovery", "cured"),
    *("ventilator_free_days", "free_days", "vfd", "vfd28", "qol", "success", "response"),
    *("responder", "remission", "improved", "benefit", "utility"),
    *("ueberlebt", "uberlebt", "lebend", "survie", "vivant", "supervivencia", "vivo", "gueri"),
    *("sopravvissuto", "sopravvivenza", "sobrevivencia", "overleefd"),
)
PROPENSITY = (
    *("propensity", "propensity_score", "pscore", "logging_prob", "logging_probability"),
    *("behavior_prob", "behaviour_prob", "action_prob", "p_action", "prob_action", "pi_b"),
)
ELIGIBLE = ("eligible", "is_decision", "decision_point")
LATER = (
    *("discharge", "dischtime", "disch", "deathtime", "dod", "deathdate", "death_date", "los"),
    *("length_of_stay", "followup", "follow_up", "outtime", "discharged", "days_to_death"),
    *("survival_time", "survival_days", "date_of_death", "entlassung", "sortie", "alta"),
    *("end_datetime", "end_date", "end_time", "enddate", "endtime", "visit_end"),
)
"""What is only known once a stay is over."""
LATER_WITHIN = ("discharge", "followup", "deathtime", "deathdate")
"""The same, wherever it stands in a name written in one: `unitdischargeoffset`."""
EARLIER = frozenset(
    {
        *("prior", "previous", "history", "hx", "baseline", "family", "allergy", "abuse", "naive"),
        *("before", "past", "chronic", "pre", "premedication", "preadmission", "vorbestehend"),
    }
)
"""Parts of names of what was there before the treatment."""
FORM_STATUS = re.compile(r"_complete$|^redcap_")
"""Columns in which REDCap keeps its own books."""
PERSONAL = (
    *("patient_name", "first_name", "last_name", "firstname", "lastname", "surname", "phone"),
    *("telephone", "mobile", "email", "e_mail", "address", "street", "ssn", "insurance_number"),
    *("vorname", "nachname", "patientenname", "adresse", "strasse", "telefon", "prenom"),
    *("nom_patient", "apellido", "cognome", "name"),
)
"""What names a person."""
ROW_NUMBER = (
    *("index", "row", "rownum", "row_id", "rowid", "rownames", "seqn", "unnamed", "unnamed_0"),
    *("x1", "nr"),
)
CODE = (
    *("code", "num", "type", "class", "ward", "site", "center", "centre", "hospital", "unit"),
    *("country", "region", "clinic", "provider", "category", "cat", "race", "ethnicity"),
    *("concept", "concept_id", "hospnum", "hospid", "hospitalid", "centreid", "centerid", "siteid"),
    *("sex", "gender", "geschlecht", "sexe", "sexo", "sesso", "marital", "religion"),
    *("wardid", "icd", "icd9", "icd10", "drg", "zip", "zipcode", "postcode", "plz", "postal"),
)
"""Of numbers that stand for names."""

PARTS = re.compile(r"[^\W_]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
SHORTEST_END = 4  # letters of a word that a longer name may begin or end with
PREFIXES = ("rx", "trt")
WHOLE_ONLY = {
    *("t", "a", "y", "tot", "fall", "loss", "failure", "event", "cost", "response", "success"),
    *("issue", "adverse", "order", "period", "round", "benefit", "x1", "nr", "rate", "name"),
    *("pat", "record"),
}
"""Words that are part of too many other names: weight loss, heart failure."""
CODE_END = re.compile(r"(code|cd|id|num|nr|no|zip|plz|postcode|icd\d*)$")
"""How the name of a number ends that counts nothing."""
ID_PARTS = frozenset(("id", "ids", "no", "nr", "num", "nummer", "number", "numero", "key"))
SURE = 2.0
"""Likeness from which a word is the name, or a part of its own."""


def parts_of(name: str) -> tuple[str, ...]:
    """A name in lower case, cut into its parts, without accents."""
    plain = unicodedata.normalize("NFKD", CAMEL.sub("_", name))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return tuple(PARTS.findall(plain.lower()))


def names_identifier(name: str, words: tuple[str, ...]) -> bool:
    """Whether a name is one of `words`, or has one of them and says that it is a number."""
    alike = likeness(name, words)
    return alike >= 3 or (alike >= SURE and bool(ID_PARTS & set(parts_of(name))))


def likeness(name: str, words: tuple[str, ...]) -> float:
    """How much a name is like one of `words`: the whole 3, a part 2, how it begins 1, ends 0.4.

    Words that come first count up to half a point more.
    """
    parts = parts_of(name)
    whole, joined = "_".join(parts), "".join(parts)
    best = 0.0
    for rank, word in enumerate(words):
        compact = word.replace("_", "")
        long = len(compact) >= SHORTEST_END
        if joined == compact:
            score = 3.0
        elif word in WHOLE_ONLY:
            continue
        elif word in parts or (("_" in word) and word in whole):
            score = 2.0
        elif joined.startswith(compact) and (long or word in PREFIXES):
            score = 1.0
        elif joined.endswith(compact) and long:
            score = 0.4
        else:
            continue
        best = max(best, score + 0.5 * (1 - rank / len(words)))
    return best
