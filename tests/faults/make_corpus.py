"""Make the corpus again: `python tests/faults/make_corpus.py`.

Each file broke the reader once: a traceback, a warning, a value of a patient in the text of an
error, or stays that silently became one. Its name says how. `test_fuzz.py` reads them all.
"""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CORPUS = Path(__file__).parent / "corpus"
HEADER = b"stay,step,action,loss,x\n"
GOOD = b"1,0,0,0.5,1\n1,1,1,0.5,2\n"

CSV = {
    "names-not-utf8": b"stay,step,action,loss,\xa2\n" + GOOD,
    "names-twice-and-ragged": b"stay,stay,step,action,loss\n" + GOOD + b"1\n",
    "ragged-row-quoted-by-the-reader": HEADER + GOOD + b"913572468,kanarienvogel\n",
    "ragged-row-not-utf8": HEADER + GOOD + b"\x81\x82,1\n",
    "stays-beyond-float64": HEADER
    + b"99999999999999999990,0,0,1,1\n99999999999999999991,0,0,1,1\n"
    + b"99999999999999999990,1,0,1,1\n99999999999999999991,1,0,1,1\n",
    "stay-infinite": HEADER + b"inf,0,0,1,1\ninf,1,0,1,1\n",
    "stay-ends-in-nul": HEADER + b"a,0,0,1,1\na,1,0,1,1\na\0,0,0,1,1\na\0,1,0,1,1\n",
    "action-1e308": HEADER + GOOD + b"1,2,1e308,0.5,1\n",
    "action-of-a-thousand-million": HEADER + GOOD + b"1,2,1000000000,0.5,1\n",
    "features-named-like-roles": b"stay,step,action,loss,group,propensity\n"
    + b"1,0,0,0.5,1,7\n1,1,1,0.5,2,7\n",
    "empty": b"",
    "only-a-bom": b"\xef\xbb\xbf",
    "one-quote": HEADER + b'"1,0,0,1,1\n',
}


def parquet(wanted: int) -> bytes:
    """A file of four rows whose metadata, by one changed byte, claims another number."""
    table = pa.table(
        {
            "stay": [1, 1, 2, 2],
            "step": [0, 1, 0, 1],
            "action": [0, 1, 1, 0],
            "loss": [0.0, 1.0, 1.0, 0.0],
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, compression="none")
    whole = sink.getvalue()
    for place in range(len(whole) // 3, len(whole)):
        for value in range(256):
            changed = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                found = pq.ParquetFile(io.BytesIO(changed)).metadata
            except (OSError, ValueError, pa.ArrowException):
                continue
            sizes = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
            if found.num_rows == wanted and sizes == [2, 2]:
                return changed
    raise LookupError("no byte makes it so")


def main() -> None:
    CORPUS.mkdir(exist_ok=True)
    for name, content in CSV.items():
        (CORPUS / f"{name}.csv").write_bytes(content)
    for name, wanted in (("fewer-rows-than-none", -5), ("too-many-rows", 6), ("too-few-rows", 3)):
        (CORPUS / f"{name}.parquet").write_bytes(parquet(wanted))


if __name__ == "__main__":
    main()
