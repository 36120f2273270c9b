"""What callers make of one action when something goes wrong: run by checks/sdks, printed as docs/reference/sdks.md."""

import concurrent.futures
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

from provider import Provider

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOME = ROOT / "target" / "sdks"
LOST = "acts, and the reply is lost"


def first(what):
    return lambda number, run: what if number == 1 else "acts"


def then(*whats):
    return lambda number, run: whats[number - 1] if number <= len(whats) else "acts"


# Title, what happens, the plan, and whether the job runs once more after it was told that all is done.
FAULTS = [
    ("reply lost", "the payment is made, and the connection closes without a byte", first(LOST), False),
    ("reply cut", "the payment is made, and half of the answer's body arrives", first("acts, and the reply is cut"), False),
    ("500", "the payment is made, and the answer is 500", first("acts, and fails"), False),
    ("503", "a balancer answers 503 with `Retry-After: 1`; nothing is done", first("front fails"), False),
    ("lost, then 503", "the payment is made and its reply lost; a balancer answers the next request 503", then(LOST, "front fails"), False),
    ("409", "the payment is made and its reply lost; the next five requests are told that it is in progress, `Retry-After: 1`",
     then(LOST, *["in progress"] * 5), False),
    ("429", "nothing is done, and the answer is 429 with `Retry-After: 2`", first("too many"), False),
    ("killed", "the payment is made, and the caller is killed before the answer", first("acts, and the caller dies"), False),
    ("outage", "the payment is made, and no reply comes back while the job's first run lasts",
     lambda number, run: LOST if run == 1 else "acts", False),
    ("run twice", "nothing goes wrong, and the job is run again after it was done", lambda number, run: "acts", True),
]


def npm(name):
    return json.loads((HOME / "js/node_modules" / name / "package.json").read_text())["version"]


def crate(name):
    lock = (HERE / "reqwest_retry/Cargo.lock").read_text()
    return re.search(rf'name = "{name}"\nversion = "([^"]+)"', lock)[1]


def said(command, pattern):
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return re.search(pattern, text)[1]


def callers():
    python, js = str(HOME / "py/bin/python"), HOME / "js"
    counterfoil = str(ROOT / "target/debug/counterfoil")
    of = importlib.metadata.version

    def send(base, action, state):
        return [counterfoil, "send", "--journal", f"sqlite:{state}/intents.db", "--profile", "stripe-v1", "--wait", "15s",
                "--intent", action, "-H", "Authorization: Bearer env:STRIPE_KEY",
                "-d", "amount=2000", "-d", "currency=eur", f"{base}/v1/payment_intents"]

    def script(*command):
        return lambda base, action, state: [*command, base, action, state]

    return [
        ("`counterfoil send`", said([counterfoil, "--version"], r"(\S+)\s*$"), "keeps its key in a journal", send),
        ("stripe (Python)", of("stripe"), "draws a key for each call, two retries", script(python, str(HERE / "stripe_python.py"))),
        ("stripe (Node)", npm("stripe"), "draws a key for each call", script("node", str(js / "stripe_node.mjs"))),
        ("axios-retry", npm("axios-retry"), "a key drawn by the process", script("node", str(js / "axios_retry.mjs"))),
        ("reqwest-retry", crate("reqwest-retry"), "a key drawn by the process", script(str(HOME / "cargo/release/reqwest-retry-caller"))),
        ("`curl --retry 3 --retry-all-errors`", said(["curl", "--version"], r"curl (\S+)"), "a key drawn by the process",
         script("sh", str(HERE / "curl.sh"))),
        ("effect-ledger", of("effect-ledger"), "sends the key that the ledger keeps", script(python, str(HERE / "effect_ledger_python.py"))),
        ("DBOS", of("dbos"), "a step that sends no key", script(python, str(HERE / "dbos_python.py"), "plain")),
        ("DBOS", of("dbos"), "a step that sends the workflow's id as key", script(python, str(HERE / "dbos_python.py"), "keyed")),
    ]


def job(command, plan, again, title):
    """A job that is run until it is told that all is done, three times at most: effects, requests, runs, the last word."""
    provider = Provider(plan)
    with tempfile.TemporaryDirectory() as state:
        told, runs, done = "failed", 0, 0
        environment = {**os.environ, "STRIPE_KEY": "sk_test_1", "XDG_STATE_HOME": state, "HOME": state}
        while runs < 3:
            runs += 1
            provider.run = runs
            process = subprocess.Popen(command(provider.base, "order-1/charge", state), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env=environment, start_new_session=True)
            # The whole session of this one caller, and nobody else's.
            provider.kill = lambda: os.killpg(process.pid, signal.SIGKILL)
            try:
                _, complaint = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                raise RuntimeError(f"{process.args} did not end within a minute: {title}, {provider.asked} sent") from None
            code = process.returncode
            told = "done" if code == 0 else "unknown" if code in (4, 5, 7, -signal.SIGKILL) else "failed"
            if code not in (0, 1, 3, 4, 5, 7, 18, 22, 52, 56, 75, -signal.SIGKILL):
                raise RuntimeError(f"{process.args} ended with {code}: {complaint.decode()}")
            done += told == "done"
            if told == "done" and (done == 2 or not again):
                break
    provider.close()
    return len(provider.effects), provider.asked, runs, told


def cell(found):
    effects, asked, runs, told = found
    number = str(effects) if effects == 1 else f"**{effects}**"
    more = "" if told == "done" else f", told *{told}*"
    return f"{number}{more}; {asked} sent" + (f", {runs} runs" if runs > 1 else "")


def main():
    who = callers()
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = {(caller[0] + caller[2], fault[0]): pool.submit(job, caller[3], fault[2], fault[3], fault[0]) for caller in who for fault in FAULTS}
    found = {place: each.result() for place, each in jobs.items()}

    print("# What callers make of one action when something goes wrong\n")
    print("Printed by `./checks/sdks`, which installs the callers, runs each of them against a provider on this machine, and counts what the")
    print("provider did. The provider keeps keys and never answers wrongly by itself: equal keys make one payment, and a request without a key")
    print("always makes one. The caller is a job: while it ends with a failure, it is run again, three times in all, with the same")
    print("arguments and the files that it left behind. Wanted is one payment, and to be told so.\n")
    print("A cell says how many payments were made, what the job was told at its end where that is not *done*, how many requests arrived, and")
    print("how often the job ran. Defaults, but where the row says more, and with DBOS's step allowed four attempts; the")
    print("programs are in `checks/callers`.\n")
    for title, what, _, _ in FAULTS:
        print(f"- **{title}**: {what}.")
    print()
    print("| | " + " | ".join(fault[0] for fault in FAULTS) + " |")
    print("|---|" + "---|" * len(FAULTS))
    for name, version, how, _ in who:
        print(f"| {name} {version}: {how} | " + " | ".join(cell(found[name + how, fault[0]]) for fault in FAULTS) + " |")
    print("\n*Failed* and *unknown* are what a caller says at its end: an ordinary error, or that the outcome is open (effect-ledger sends")
    print("nothing a second time: a person looks, and decides). A job that is told *failed* though the payment was made is about to make a")
    print("second one by hand.")
    node = said(["node", "--version"], r"v(\S+)")
    print(f"\n{datetime.date.today():%Y-%m-%d}; Python {sys.version.split()[0]}, Node {node}, "
          f"axios {npm('axios')}, reqwest {crate('reqwest')}.")
    print(f"{len(found)} cells in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    ours = [(fault[0], found[who[0][0] + who[0][2], fault[0]]) for fault in FAULTS]
    wrong = [(fault, seen) for fault, seen in ours if (seen[0], seen[3]) != (1, "done")]
    if wrong:
        sys.exit(f"counterfoil send kept no promise: {wrong}")


main()
