"""Workers that need no server: each does what its connector is called."""

from __future__ import annotations

from connector.config import Configuration
from connector.worker.supervisor import Supervisor
from tests.config.files import loaded

# Does what the connector is called: reports and works until it is ended, fails, finds its configuration wrong.
WORKER = """
import json, os, pickle, signal, sys, threading
order = pickle.load(sys.stdin.buffer)
name = order.configuration.connector.name
if name == "fails":
    print(json.dumps({"event": "end", "cause": "FatalDeliveryError: no rights"}), flush=True)
    sys.exit(1)
if name == "wrong":
    print(json.dumps({"event": "end", "cause": "another group runs it"}), flush=True)
    sys.exit(2)
state = "FAILED" if name == "failed" else "RUNNING"
topics = [f"written by {os.getpid()}"] if name == "writes" else []
def listen():
    global state
    for line in sys.stdin.buffer:
        if line == b"FORGET_TOPICS\\n":
            topics.clear()
            continue
        state = "RUNNING" if line == b"TRY_AGAIN\\n" else "FAILED"
threading.Thread(target=listen, daemon=True).start()
status = {"worker": name, "index": order.index, "connector": name, "fingerprint": "f", "tables_configured": [],
          "time_ms": 1, "pid": os.getpid(), "slots": [0], "slot_count": 1, "tables": {}, "delivery": {"rebalances": 1}}
if name == "measured":
    status["tables"] = {"ks.t": {"state": "RUNNING", "position_ms": 1, "lag_ms": 5, "records": 1}}
def end():
    while os.path.exists(os.environ.get("LINGER", "")):
        threading.Event().wait(0.05)
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end).start())
while True:
    print(json.dumps({"event": "status", "status": {**status, "state": state, "topics": topics}}), flush=True)
    threading.Event().wait(0.3)
"""


def configured(name: str) -> Configuration:
    return loaded({"name": name, "topic.prefix": name})


def state(supervisor: Supervisor, name: str) -> str:
    return str(supervisor.status().connectors[name].state.value)
