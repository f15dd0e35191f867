"""The service under load on loopback: requests a second, p99, memory, and what the network adds.

    python -m benchmarks.serve                 # one stay, a batch of 1,000, 32 clients for 60 s
    python -m benchmarks.serve --seconds 10    # shorter

The policy is learned here, on ICU-Sepsis (47 features, 25 actions). Times of a busy machine are
noise: beside them stands the processor time of the service, and of asking the policy directly.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from etips.learn import DirectMethod, Settings, Training
from etips.models.encoders.gru import GRU
from etips.policies.policy_files import load_policy, save_policy
from etips.serve.schemas import Question
from etips.serve.stays import Advisor
from etips.worlds import icu_sepsis

TOKEN = "benchmark-token-0123456789"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
PATH = "/v1/recommend"


def make_run(folder: Path, n_stays: int) -> list[dict]:
    """A policy in a folder, and stays as requests hold them."""
    log = icu_sepsis.simulate(n_stays, seed=0, lag=0)
    brief = Settings(epochs=2)
    training = Training(n_folds=2, policy=brief, propensity=brief, outcome=brief)
    policy = DirectMethod(encoder=GRU(64), training=training, seed=0).fit(log).policy_
    save_policy(policy, folder / "run")
    rows, names = log.sequence[:], log.schema.sequence
    return [
        {
            "steps": [
                {"values": dict(zip(names, map(float, row), strict=True))}
                for row in rows[log.offsets[k] : log.offsets[k + 1]]
            ]
        }
        for k in range(n_stays)
    ]


def start(folder: Path) -> tuple[subprocess.Popen, str]:
    """The service as a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "etips", "serve", "run", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "ETIPS_SERVE_TOKEN": TOKEN},
    )
    return process, process.stdout.readline().split()[1].partition("/?")[0]


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def one_after_another(base: str, bodies: list[bytes], n: int) -> np.ndarray:
    """Seconds of each of n requests."""
    took = []
    with httpx.Client(base_url=base, headers=HEADERS, timeout=60) as client:
        for number in range(n):
            started = time.perf_counter()
            client.post(PATH, content=bodies[number % len(bodies)]).raise_for_status()
            took.append(time.perf_counter() - started)
    return np.array(took)


async def at_once(base: str, bodies: list[bytes], clients: int, seconds: float, pid: int):
    """Seconds of each request of many clients, how many failed, and memory on the way."""
    took, failed, memory = [], 0, []
    end = time.perf_counter() + seconds

    async def one(number: int) -> None:
        nonlocal failed
        async with httpx.AsyncClient(base_url=base, headers=HEADERS, timeout=60) as client:
            while time.perf_counter() < end:
                started = time.perf_counter()
                number += clients
                try:
                    answer = await client.post(PATH, content=bodies[number % len(bodies)])
                    failed += answer.status_code != 200
                except httpx.HTTPError:
                    failed += 1
                took.append(time.perf_counter() - started)

    async def watch() -> None:
        while time.perf_counter() < end:
            memory.append(resident(pid))
            await asyncio.sleep(min(1.0, seconds / 20))

    await asyncio.gather(watch(), *(one(number) for number in range(clients)))
    return np.array(took), failed, memory


def directly(folder: Path, bodies: list[bytes], n: int) -> tuple[float, float]:
    """Processor seconds of a request when the policy is asked in this process, and when its stays
    are read from JSON before that."""
    policy = load_policy(folder / "run")
    advisor = Advisor(policy)
    question = Question(advisor.form, advisor.labels, earlier_actions=False)
    stays = [question.read(body)[0] for body in bodies]
    for own in stays[:20]:
        advisor.ask(own)
    started = time.process_time()
    for number in range(n):
        policy.answer(stays[number % len(stays)])
    alone = (time.process_time() - started) / n
    started = time.process_time()
    for number in range(n):
        advisor.ask(question.read(bodies[number % len(bodies)])[0])
    return alone, (time.process_time() - started) / n


def show(what: str, took: np.ndarray, processor: float) -> None:
    p50, p99 = (1000 * np.quantile(took, own) for own in (0.5, 0.99))
    own = 1000 * processor / len(took)
    print(f"{what}: median {p50:.1f} ms, p99 {p99:.1f} ms; processor {own:.2f} ms a request")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=400)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stays = make_run(folder, 1000)
        single = [json.dumps({"stays": [own]}).encode() for own in stays[:100]]
        batch = [json.dumps({"stays": stays}).encode()]
        alone, read = directly(folder, single, asked.requests)
        process, base = start(folder)
        try:
            one_after_another(base, single, 30)
            for what, bodies, n in (
                ("one stay", single, asked.requests),
                ("1,000 stays", batch, 7),
            ):
                before = processor_seconds(process.pid)
                took = one_after_another(base, bodies, n)
                used = processor_seconds(process.pid) - before
                show(what, took, used)
                if n > 7:
                    print(f"  {n / took.sum():.0f} requests a second by one client")
                    print(
                        f"  the policy alone {1000 * alone:.2f} ms: {used / n / alone:.2f} times;"
                    )
                    print(f"  with support, read from JSON, {1000 * read:.2f} ms")
            before = processor_seconds(process.pid)
            work = at_once(base, single, asked.clients, asked.seconds, process.pid)
            took, failed, memory = asyncio.run(work)
            used = processor_seconds(process.pid) - before
            show(f"{asked.clients} clients", took, used)
            print(f"  {len(took) / asked.seconds:.0f} requests a second, {failed} failed")
            third = len(memory) // 3
            early, late = np.median(memory[third : 2 * third]), np.median(memory[-third:])
            print(f"  memory {early:.0f} MB in the second third, {late:.0f} MB in the last")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


if __name__ == "__main__":
    main()
