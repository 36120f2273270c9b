"""What a program that posts with the package `httpx` meets: one JSON object a line, for each call that it makes.

python httpx_client.py API_BASE [ROOTS]

With a file of certificates to believe it speaks HTTP/2.
"""

import json
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx

POOL = httpx.Limits(max_connections=2, max_keepalive_connections=2)
PATIENT = httpx.Timeout(60)
# The service holds the request for longer.
IMPATIENT = httpx.Timeout(60, read=1)


def port(response):
    stream = response.extensions["network_stream"]
    response.extensions["port"] = stream.get_extra_info("client_addr")[1]


base, *roots = sys.argv[1:]
client = httpx.Client(
    base_url=base,
    limits=POOL,
    timeout=PATIENT,
    trust_env=False,
    event_hooks={"response": [port]},
    http2=bool(roots),
    verify=ssl.create_default_context(cafile=roots[0]) if roots else True,
)


def post(path, key, body, timeout=PATIENT):
    try:
        answer = client.post(path, json=body, headers={"Idempotency-Key": key}, timeout=timeout)
    except httpx.TimeoutException as error:
        return {"key": key, "error": type(error).__name__}
    return {
        "key": key,
        "status": answer.status_code,
        "version": answer.http_version,
        "replayed": answer.headers.get("Idempotent-Replayed"),
        "type": answer.headers.get("Content-Type"),
        "body": answer.text,
        "connection": answer.extensions["port"],
    }


def tell(answer):
    print(json.dumps(answer), flush=True)


order = {"item": "pen", "count": 1}
# Each twice at the same time.
keys = sorted(["k-1", "k-2", "k-3", "k-4"] * 2)
with ThreadPoolExecutor(8) as threads:
    for answer in threads.map(lambda key: post("/orders", key, order), keys):
        tell(answer)
tell(post("/orders", "k-1", {"item": "pen", "count": 2}))
tell(post("/hold", "k-5", order, IMPATIENT))
tell(post("/hold", "k-5", order))
