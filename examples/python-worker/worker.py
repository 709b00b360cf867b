"""A worker of Millrace in Python: claims jobs, says that it is alive, runs steps, completes.

    MILLRACE_URL=http://127.0.0.1:7480 MILLRACE_TOKEN=mr_… python3 worker.py

The token needs the scope `work`, for all tenants. Nothing but the standard library is used.
"""

import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("MILLRACE_URL", "http://127.0.0.1:7480")
TOKEN = os.environ["MILLRACE_TOKEN"]
TYPE = os.environ.get("MILLRACE_TASK_TYPE", "email-send")
# Unique for each start: a worker that comes back is another one.
WORKER = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
LEASE_MS = int(os.environ.get("MILLRACE_LEASE_MS", "15000"))


class Lost(Exception):
    """The job is another worker's by now, or has ended: stop, nothing of it is taken any more."""


def call(path, body):
    request = urllib.request.Request(
        URL + path,
        data=json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        if problem.get("code") == "TASK_STALE":
            raise Lost(problem["detail"]) from error
        raise RuntimeError(f"{error.code} {problem.get('code')}: {problem.get('detail')}") from error


class Job:
    """A job that is held. Its finished steps come with it, and are not run again."""

    def __init__(self, claimed):
        self.token = claimed["token"]
        self.payload = claimed["task"]["payload"]
        self.done = {
            step["name"]: step.get("result")
            for step in claimed["task"]["steps"]
            if step["state"] == "completed"
        }
        self.is_lost = False
        self.is_cancelled = False

    def say(self, deed, **said):
        path = f"/api/v1/worker/jobs/{self.token['id']}/{deed}"
        return call(path, {"fence": self.token["fence"], **said})

    def step(self, name, work):
        if name in self.done:
            return self.done[name]
        if self.is_lost:
            raise Lost(name)
        self.say("steps/start", name=name)
        result = work()
        self.say("steps/finish", name=name, result=result)
        return result


held = {}


def beat():
    """A thread of its own: a step that takes long is not taken for dead."""
    while True:
        try:
            tokens = [job.token for job in list(held.values())]
            body = {"worker": WORKER, "leaseMs": LEASE_MS, "tokens": tokens, "about": {"language": "python"}}
            for item in call("/api/v1/worker/heartbeat", body)["items"]:
                job = held.get(item["id"])
                if job is not None and item["state"] == "lost":
                    job.is_lost = True
                elif job is not None and item.get("cancelAt"):
                    job.is_cancelled = True
        except Exception as error:  # the server may be away; the next beat tells
            print(f"heartbeat: {error}", file=sys.stderr)
        time.sleep(LEASE_MS / 3000)


def run(job, handler):
    held[job.token["id"]] = job
    try:
        result = handler(job)
        if job.is_cancelled:
            job.say("cancelled")
        else:
            job.say("complete", result=result)
    except Lost as error:
        print(f"lost: {error}", file=sys.stderr)
    except Exception as error:
        job.say("fail", failure={"message": str(error)})
    finally:
        held.pop(job.token["id"], None)


def send_email(job):
    def render():
        print(f"render {job.token['id']}", flush=True)
        return {"text": f"Hello, {job.payload['to']}"}

    def send():
        print(f"send {job.token['id']}", flush=True)
        time.sleep(float(job.payload.get("seconds", 0)))
        return {"sent": True}

    text = job.step("render", render)["text"]
    return {"text": text, **job.step("send", send)}


def main():
    threading.Thread(target=beat, daemon=True).start()
    print(f"worker {WORKER} waits for {TYPE}", flush=True)
    while True:
        try:
            wanted = {"worker": WORKER, "types": {TYPE: 1}, "waitMs": 20000, "leaseMs": LEASE_MS}
            for claimed in call("/api/v1/worker/claim", wanted)["items"]:
                run(Job(claimed), send_email)
        except (OSError, RuntimeError) as error:
            print(f"claim: {error}", file=sys.stderr)
            time.sleep(1)


if __name__ == "__main__":
    main()
