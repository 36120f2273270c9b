"""One payment with Stripe's Python SDK, told to retry twice: it draws the key."""

import sys

import stripe

base, _action, _state = sys.argv[1:]
client = stripe.StripeClient("sk_test_1", base_addresses={"api": base}, max_network_retries=2)
try:
    made = client.v1.payment_intents.create({"amount": 2000, "currency": "eur"})
except stripe.StripeError as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(made.id)
