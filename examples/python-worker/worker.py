"""A Millrace worker in Python: claims jobs, sends heartbeats, runs steps and completes jobs.

    MILLRACE_URL=http://127.0.0.1:7480 MILLRACE_TOKEN=mr_… python3 worker.py

The token needs the scope `work`, for all tenants. The worker uses only the standard library.
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
# Unique per start: a restarted worker is a new worker.
WORKER = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
LEASE_MS = int(os.environ.get("MILLRACE_LEASE_MS", "15000"))


class Lost(Exception):
    """Another worker owns the job, or it has ended: stop, because further calls are rejected."""


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
    """A claimed job. Its finished steps are known and do not run again."""

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

    def report(self, action, **fields):
        path = f"/api/v1/worker/jobs/{self.token['id']}/{action}"
        return call(path, {"fence": self.token["fence"], **fields})

    def step(self, name, work):
        if name in self.done:
            return self.done[name]
        if self.is_lost:
            raise Lost(name)
        self.report("steps/start", name=name)
        result = work()
        self.report("steps/finish", name=name, result=result)
        return result


claimed_jobs = {}


def send_heartbeats():
    """Runs in a separate thread, so a long step does not stop the heartbeats."""
    while True:
        try:
            tokens = [job.token for job in list(claimed_jobs.values())]
            body = {"worker": WORKER, "leaseMs": LEASE_MS, "tokens": tokens, "about": {"language": "python"}}
            for item in call("/api/v1/worker/heartbeat", body)["items"]:
                job = claimed_jobs.get(item["id"])
                if job is not None and item["state"] == "lost":
                    job.is_lost = True
                elif job is not None and item.get("cancelAt"):
                    job.is_cancelled = True
        except Exception as error:  # the server may be unavailable; the next heartbeat retries
            print(f"heartbeat: {error}", file=sys.stderr)
        time.sleep(LEASE_MS / 3000)


def run(job, handler):
    claimed_jobs[job.token["id"]] = job
    try:
        result = handler(job)
        if job.is_cancelled:
            job.report("cancelled")
        else:
            job.report("complete", result=result)
    except Lost as error:
        print(f"lost: {error}", file=sys.stderr)
    except Exception as error:
        job.report("fail", failure={"message": str(error)})
    finally:
        claimed_jobs.pop(job.token["id"], None)


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
    threading.Thread(target=send_heartbeats, daemon=True).start()
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
