"""What a program that pays with the package `stripe` meets: one JSON object a line, for each call that it makes.

python stripe_client.py API_BASE
"""

import json
import sys

import stripe

stripe.api_key = "sk_test_none"
stripe.api_base = sys.argv[1]
# Each line below is one request on the wire.
stripe.max_network_retries = 0


def tell(call):
    try:
        answer = call().last_response
        status, body, replayed = 200, answer.body, answer.headers.get("Idempotent-Replayed")
    except stripe.StripeError as error:
        status, body, replayed = error.http_status, error.http_body, None
    print(json.dumps({"status": status, "body": body, "replayed": replayed}), flush=True)


def pay(amount, key):
    tell(
        lambda: stripe.PaymentIntent.create(
            amount=amount, currency="eur", metadata={"order": "A-1"}, idempotency_key=key
        )
    )


pay(1000, "k-1")
pay(1000, "k-1")
pay(2000, "k-1")
pay(1000, '"k-1"')
pay(1000, "k-2")
tell(lambda: stripe.PaymentIntent.retrieve("pi_1"))
