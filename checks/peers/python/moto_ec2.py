"""JSON in front of the EC2 of `moto`, which takes form bodies: an order is RunInstances with the key as its ClientToken.

moto runs as a server of its own in this process and is called over HTTP by `boto3`, without retries. An effect is a
reservation, whatever the number of its instances.
"""

import json

import boto3
import orders
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
moto.start()
ec2 = boto3.client(
    "ec2",
    region_name="us-east-1",
    endpoint_url="http://{}:{}".format(*moto.get_host_and_port()),
    aws_access_key_id="none",
    aws_secret_access_key="none",
    config=Config(retries={"total_max_attempts": 1}, max_pool_connections=64),
)
IMAGE = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]


def run(order: dict, token: str | None) -> Response:
    told = {"ClientToken": token} if token else {}
    quantity = int(order["quantity"])
    try:
        made = ec2.run_instances(ImageId=IMAGE, MinCount=quantity, MaxCount=quantity, **told)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return JSONResponse({"error": error.response["Error"]["Code"]}, status)
    return JSONResponse({"id": made["ReservationId"], "instances": len(made["Instances"])}, 200)


async def place(request: Request) -> Response:
    try:
        order = json.loads(await request.body())
    except ValueError:
        return JSONResponse({"error": "no JSON"}, 400)
    wrong = orders.fault(order)
    if wrong or order["quantity"] > 5:
        return JSONResponse({"error": wrong or "too many"}, 400)
    token = request.headers.get("Idempotency-Key") or request.query_params.get("ClientToken")
    return await run_in_threadpool(run, order, token)


def reservations() -> int:
    pages = ec2.get_paginator("describe_instances").paginate()
    return sum(len(page["Reservations"]) for page in pages)


async def count(_: Request) -> Response:
    return JSONResponse({"count": await run_in_threadpool(reservations)})


routes = [Route("/orders", place, methods=["POST"]), Route("/orders", count, methods=["GET"])]
orders.serve(Starlette(routes=routes))
