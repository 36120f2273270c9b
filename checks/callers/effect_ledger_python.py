"""One payment as an effect of effect-ledger, sent with the key that it hands out."""

import sys

from effect_ledger import EffectExecutor

from post import pay

base, action, state = sys.argv[1:]
executor = EffectExecutor(f"{state}/effects.sqlite", scope="payments")
ended = executor.execute(action, "pay:v1", {"amount": 2000}, lambda operation: pay(base, operation.provider_key))
print(ended.state)
# What it calls unresolved waits for a person.
sys.exit(0 if ended.state == "completed" else 4)
