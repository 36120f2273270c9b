"""One payment as a step of a DBOS workflow whose id is the action's name, without a key or with that name as one."""

import sys

from dbos import DBOS, SetWorkflowID

from post import pay

keyed = sys.argv[1] == "keyed"
base, action, state = sys.argv[2:]
DBOS(config={"name": "payments", "system_database_url": f"sqlite:///{state}/dbos.sqlite", "run_admin_server": False,
             "log_level": "CRITICAL"})


@DBOS.step(retries_allowed=True, max_attempts=4)
def send():
    return pay(base, DBOS.workflow_id if keyed else None)


@DBOS.workflow()
def order():
    return send()


DBOS.launch()
try:
    with SetWorkflowID(action):
        print(order())
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
finally:
    DBOS.destroy()
