"""Starts every server of servers.toml, probes it, stops it, three times over, and writes docs/reference/probed.md with the
exchanges of the deviations beside it.

    python checks/peers/probed.py COUNTERFOIL HOME [SERVER…]

COUNTERFOIL is the command, HOME where `checks/peers/install --all` has put the packages. With names of servers, as the files
of their exchanges are called, only these are probed, and of the others the last results in HOME are taken. What does not belong here: any judgement, which is the
probe's.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
import urllib.request
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE = ROOT / "docs/reference/probed.md"
EVIDENCE = ROOT / "docs/reference/probed"
BODY = {"product": "tea", "quantity": 2, "tags": ["a", "b"]}
ORDER_MS = "20"
RUNS = 3
STARTS_WITHIN_SECONDS = 60
ENDS_WITHIN_SECONDS = 10
# Of a request and an answer these say nothing about keys.
DULL = {"host", "user-agent", "accept", "connection", "content-length", "date", "server", "x-powered-by", "keep-alive", "etag"}


class Running:
    """A process that is gone when the block ends."""

    def __init__(self, command: list, directory: Path, **more: str) -> None:
        self.log = directory / "server.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                cwd=directory,
                env={**environment, "ORDER_MS": ORDER_MS, "NODE_ENV": "production", **more},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def failed(self, why: str) -> SystemExit:
        said = self.log.read_text(errors="replace")[-2000:]
        return SystemExit(f"{self.process.args[-1]}: {why}\n{said}")

    def told(self) -> str:
        """The address on its first line."""
        line: list[str] = []
        reader = threading.Thread(target=lambda: line.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(STARTS_WITHIN_SECONDS)
        if not line or not line[0].strip():
            raise self.failed("it does not say where it listens")
        return line[0].strip()

    def listens(self, port: int) -> None:
        begun = time.monotonic()
        while time.monotonic() - begun < STARTS_WITHIN_SECONDS:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                try:
                    self.process.wait(0.05)
                    break
                except subprocess.TimeoutExpired:
                    continue
        raise self.failed("it does not listen")


def program(home: Path, run: list[str]) -> list:
    kind, name, *arguments = run
    match kind:
        case "python":
            return [home / "py/bin/python", HERE / "python" / name, *arguments]
        case "node":
            # Node looks for packages beside the program.
            for file in (HERE / "node").glob("*.mjs"):
                shutil.copy(file, home / "node")
            return ["node", home / "node" / name]
        case "rust":
            return [home / "build/debug" / name]
    raise SystemExit(f"no way to run {kind}")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def probe(counterfoil: str, server: dict, home: Path, directory: Path) -> dict:
    """Starts it, probes it, stops it."""
    if server["run"] == ["proxy"]:
        with Running(program(home, ["rust", "bare"]), directory) as behind:
            origin = f"http://{behind.told()}"
            port = free_port()
            # It does not start without the file.
            (directory / ".env").write_text("")
            urls = {"URL_ORDERS": f"{origin}/orders", "URL_REFUNDS": f"{origin}/refunds"}
            command = [home / "rust/bin/idempotent-proxy-server"]
            told = {"SERVER_ADDR": f"127.0.0.1:{port}", "LOG_LEVEL": "error"}
            with Running(command, directory, **told, **urls) as proxy:
                proxy.listens(port)
                at = f"http://127.0.0.1:{port}"
                return asked(counterfoil, server, directory, (f"{at}/URL_ORDERS", f"{at}/URL_REFUNDS", f"{origin}/orders"))
    with Running(program(home, server["run"]), directory) as running:
        at = f"http://{running.told()}"
        return asked(counterfoil, server, directory, (f"{at}/orders", f"{at}/refunds", f"{at}/orders"))


def asked(counterfoil: str, server: dict, directory: Path, urls: tuple[str, str, str]) -> dict:
    orders, refunds, count = urls
    report = directory / "result.json"
    report.unlink(missing_ok=True)
    command = [counterfoil, "probe", orders, "--body", json.dumps(BODY, separators=(",", ":")), "--vary", "/quantity"]
    command += ["--id", "/id", "--count-url", count, "--count", "/count", "--default-member", "/gift=false"]
    if server.get("contract"):
        command += ["--contract", server["contract"], "--key", "header:Idempotency-Key"]
    else:
        command += ["--also", f"other={refunds}"]
    if server.get("session"):
        with urllib.request.urlopen(orders.rsplit("/", 1)[0] + server["session"]) as answer:
            command += ["--header", "Cookie: " + answer.headers["Set-Cookie"].split(";")[0]]
    done = subprocess.run([*command, "--report", f"json={report}"], capture_output=True, text=True)
    (directory / "said.txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (0, 1) or not report.exists():
        raise SystemExit(f"{server['name']}: the probe ended with {done.returncode}\n{done.stderr[-4000:]}")
    # Where this tree stands is nobody's business.
    return json.loads(report.read_text().replace(str(ROOT), ""))


def versions(server: dict, home: Path) -> list[str]:
    """Name and version of each package, as they are installed."""
    found = []
    for name in server.get("python", []):
        found.append(f"{name} {metadata.version(name)}")
    for name in server.get("node", []):
        manifest = json.loads((home / "node/node_modules" / name / "package.json").read_text())
        found.append(f"{name} {manifest['version']}")
    if server.get("crates"):
        # The build is `--locked`.
        lock = tomllib.loads((ROOT / "bench/peers/Cargo.lock").read_text())
        locked = {package["name"]: package["version"] for package in lock["package"]}
        found += [f"{name} {locked[name]}" for name in server["crates"]]
    if server.get("installed"):
        lines = tomllib.loads((home / "rust/.crates.toml").read_text())["v1"]
        installed = dict(line.split(" ")[:2] for line in lines)
        found += [f"{name} {installed[name]}" for name in server["installed"]]
    return found


def slug(server: dict) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{server['name']} {server.get('variant', '')}".lower()).strip("-")


def title(server: dict, found: list[str]) -> str:
    """Its name and version: its own package is the first."""
    return found[0] + (f", {server['variant']}" if "variant" in server else "")


def word(verdict: str | dict) -> str:
    return verdict if isinstance(verdict, str) else f"deviates ({verdict['deviates']})"


def deviates(result: dict) -> bool:
    return isinstance(result["verdict"], dict)


def answered(result: dict) -> bool:
    return deviates(result) or result["verdict"] in ("conforms", "yes", "no", "value")


def badness(result: dict) -> int:
    if deviates(result):
        return 2 + ["minor", "major", "critical"].index(result["verdict"]["deviates"])
    return int(answered(result))


def worst(runs: list[dict]) -> list[dict]:
    """Of each case the worst result, with its run and in how many of them it deviates."""
    found = []
    for index, result in enumerate(runs[0]["results"]):
        same = [run["results"][index] for run in runs]
        number = max(range(len(runs)), key=lambda run: (badness(same[run]), -run))
        found.append({**same[number], "run": runs[number], "often": sum(map(deviates, same))})
    return found


def plain(headers: list) -> dict:
    return {name: value for name, value in headers if name not in DULL}


def shown(exchange: dict) -> dict:
    told = {"as": exchange["name"], "request": f"{exchange['method']} {exchange['path']}"}
    told |= {"headers": plain(exchange["headers"]), "body": exchange["body"]}
    if exchange["lost"]:
        told["lost"] = exchange["lost"]
    if exchange["answer"]:
        answer = exchange["answer"]
        told["answer"] = {"status": answer["status"], "headers": plain(answer["headers"]), "body": answer["body"][:600]}
    if exchange["fault"]:
        told["no answer"] = exchange["fault"]
    return told


def evidence(case: dict) -> dict:
    """The exchanges of one round, of those with an error of the server or else with most successes; equal ones in a row are
    one with their number."""
    numbers = set(case["exchanges"])
    rounds: dict[int, list] = {}
    for exchange in case["run"]["exchanges"]:
        if exchange["number"] in numbers:
            rounds.setdefault(exchange["round"], []).append(exchange)

    def telling(number: int) -> tuple[bool, int, int]:
        statuses = [exchange["answer"]["status"] for exchange in rounds[number] if exchange["answer"]]
        return any(status >= 500 for status in statuses), sum(200 <= status < 300 for status in statuses), -number

    number = max(rounds, key=telling)
    kept: list[dict] = []
    for exchange in rounds[number]:
        told = shown(exchange)
        if kept and {**kept[-1], "times": 0} == {**told, "times": 0}:
            kept[-1]["times"] = kept[-1].get("times", 1) + 1
        else:
            kept.append(told)
    told = {"case": case["id"], "row": case["row"], "asks": case["asks"], "verdict": word(case["verdict"])}
    told |= {"expected": case["expected"], "found": case["why"], "sent": case["summary"]}
    told |= {"deviates in": f"{case['often']} of {RUNS} runs"}
    return told | {"round": number, "exchanges": kept}


def sentence(case: dict, remark: str | None) -> str:
    asks = case["asks"]
    often = "" if case["often"] == RUNS else f", in {case['often']} of {RUNS} runs"
    found = f"Wanted: {case['expected']}; found{often}: {case['why']} ({case['summary']})."
    return f"- {case['row']} `{case['id']}`, {case['verdict']['deviates']}. {asks} {found}" + (f" {remark}" if remark else "")


def cell(case: dict) -> str:
    verdict = word(case["verdict"])
    if deviates(case):
        return f"**{verdict}**"
    if verdict == "value":
        return f"value: {case['why']}".replace("|", "\\|")
    return verdict


def told(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, 128, break_long_words=False, break_on_hyphens=False), ""]


def page(servers: list[dict], tables: list[list[dict]], day: str, home: Path) -> str:
    installed = [versions(server, home) for server in servers]
    tools = f"Python {sys.version.split()[0]}, Node {told(['node', '--version'])[1:]}, {told(['rustc', '--version']).split(' (')[0]}"
    lines = ["# Servers of others, probed", ""]
    lines += paragraph(
        "What `counterfoil probe` finds of servers that keep idempotency keys and were written by others. `./checks/probed` makes this "
        "page: it installs the packages, starts each one in a small service of ours, probes it, and stops it. Nothing here is written "
        "by hand but what the services are and the last sentences of some deviations, which stand in "
        "[servers.toml](../../checks/peers/servers.toml)."
    )
    lines += paragraph(
        f"Last run: {day}, {tools}. Each server is started and probed {RUNS} times, and of each case the worst answer is told: what "
        "needs a race may show in one run and not in another. An order takes "
        f"{ORDER_MS} ms, so that two can be under way at once; the body is `{json.dumps(BODY, separators=(',', ':'))}`. Effects are "
        "counted apart from answers. Packages are judged as they come, against a contract that most of them do not claim to keep: a "
        "deviation is a difference that a caller has to know, and many can be configured away."
    )
    lines += ["| column | packages | what was probed | contract | exchanges of the deviations |", "|---|---|---|---|---|"]
    for number, (server, found, cases) in enumerate(zip(servers, installed, tables), 1):
        file = f"{slug(server)}.json"
        link = f"[{file}](probed/{file})" if any(map(deviates, cases)) else "none"
        contract = cases[0]["run"]["contract"]
        lines.append(f"| {number} | {', '.join(found)} | {server['how']} | `{contract}` | {link} |")
    lines += ["", "## The matrix", ""]
    lines += paragraph(
        "Rows are the cases of the probe, whose questions `counterfoil probe --list` prints; the verdicts are explained in "
        "[cli.md](cli.md#probe). `unobservable` are the questions about credentials, because none of these packages authenticates "
        "anybody. `depends-on-failed`: a case that this one builds on deviates in the same column. `inconclusive`: the service does not "
        "take the body that the question needs, or nothing was refused that could be described."
    )
    heads = [f"{number} {title(server, found)}" for number, (server, found) in enumerate(zip(servers, installed), 1)]
    lines += ["| row | case | " + " | ".join(heads) + " |", "|---|---|" + "---|" * len(servers)]
    for cases in zip(*tables, strict=True):
        lines.append(f"| {cases[0]['row']} | `{cases[0]['id']}` | " + " | ".join(map(cell, cases)) + " |")
    lines += ["", "## The deviations"]
    for server, head, cases in zip(servers, heads, tables):
        lines += ["", f"### {head}", ""]
        remarks = server.get("remarks", {})
        deviating = [case for case in cases if deviates(case)]
        stale = set(remarks) - {case["id"] for case in deviating}
        if stale:
            raise SystemExit(f"{head}: remarks on what does not deviate: {', '.join(sorted(stale))}")
        lines.append(f"{sum(map(answered, cases))} of {len(cases)} cases answered, {len(deviating)} with a deviation.")
        if deviating:
            lines += [""] + [sentence(case, remarks.get(case["id"])) for case in deviating]
    return "\n".join(lines) + "\n"


def probed(counterfoil: str, server: dict, home: Path, anew: bool) -> list[dict]:
    """The results of all runs."""
    runs = []
    begun = time.monotonic()
    for number in range(RUNS):
        directory = home / "runs" / slug(server) / str(number)
        directory.mkdir(parents=True, exist_ok=True)
        kept = directory / "kept.json"
        if anew:
            (directory / "server.log").unlink(missing_ok=True)
            kept.write_text(json.dumps(probe(counterfoil, server, home, directory)))
        runs.append(json.loads(kept.read_text()))
    if anew:
        count = sum(map(deviates, worst(runs)))
        print(f"{slug(server)}: {count} deviations, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return runs


def main() -> None:
    counterfoil, home, *only = sys.argv[1:]
    home = Path(home).resolve()
    servers = tomllib.loads((HERE / "servers.toml").read_text())["server"]
    unknown = set(only) - set(map(slug, servers))
    if unknown:
        raise SystemExit(f"no server of that name: {', '.join(sorted(unknown))}; there are {', '.join(map(slug, servers))}")
    tables = [worst(probed(counterfoil, server, home, not only or slug(server) in only)) for server in servers]
    day = max(case["run"]["began"] for cases in tables for case in cases)[:10]
    text = page(servers, tables, day, home)
    EVIDENCE.mkdir(exist_ok=True)
    for old in EVIDENCE.glob("*.json"):
        old.unlink()
    for server, cases in zip(servers, tables):
        shown_cases = [evidence(case) for case in cases if deviates(case)]
        if shown_cases:
            kept = {"server": title(server, versions(server, home)), "packages": versions(server, home)}
            kept |= {"contract": cases[0]["run"]["contract"], "cases": shown_cases}
            (EVIDENCE / f"{slug(server)}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
