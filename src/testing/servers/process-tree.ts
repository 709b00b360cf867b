// Signals to a server and all of its children: PostgreSQL's backends leave their parent's process
// group, so that a group kill would miss them.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { systemClock } from '../../foundation/clock.ts';

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Ended, but not yet collected by its parent. */
  readonly zombie: boolean;
}

const pollIntervalMs = 5;
const stoppedWithinMs = 5_000;
const pause = new Int32Array(new SharedArrayBuffer(4));

/** Sends the signal to the process and to everything below it; returns whom it was sent to. */
export function signalTree(pid: number, signal: NodeJS.Signals): readonly number[] {
  // Stopped first, the root cannot fork a child that the list would miss.
  send(pid, 'SIGSTOP');
  const pids = descendants(pid);
  for (const each of pids) send(each, signal);
  return pids;
}

/**
 * Stops the process and everything below it, every thread: one that waits for the disk, or for a core, may
 * answer once more after the signal was sent.
 */
export function stopTree(pid: number): void {
  const pids = signalTree(pid, 'SIGSTOP');
  if (process.platform !== 'linux') return;
  const deadline = performance.now() + stoppedWithinMs;
  while (pids.some(hasRunningThread) && performance.now() < deadline) Atomics.wait(pause, 0, 0, 1);
}

function hasRunningThread(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).some((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8');
      return !/^[TZXt]/.test(stat.slice(stat.lastIndexOf(')') + 2));
    });
  } catch {
    // Ended meanwhile.
    return false;
  }
}

export interface TreeEnd {
  /** What the root is asked with first; SIGKILL takes the whole tree down at once. */
  readonly signal: NodeJS.Signals;
  /** How long the root may take before the whole tree is killed. */
  readonly graceMs: number;
}

/** Resolves when the process and its children are gone, whether they were willing or not. */
export async function endTree(pid: number, how: TreeEnd): Promise<void> {
  let left: readonly number[] = [pid];
  if (how.signal !== 'SIGKILL') {
    send(pid, how.signal);
    // A paused server would never see the signal.
    left = signalTree(pid, 'SIGCONT');
    if (await whenGone(left, how.graceMs)) return;
  }
  await whenGone(left.filter(isRunning).flatMap((each) => signalTree(each, 'SIGKILL')));
}

/** Whether the process still runs; a zombie does not, whoever forgot to collect it. */
export function isRunning(pid: number): boolean {
  const row =
    process.platform === 'linux'
      ? readProcess(pid)
      : listProcesses().find((each) => each.pid === pid);
  return row !== undefined && !row.zombie;
}

/** Resolves with whether all of them were gone in time. */
export async function whenGone(pids: readonly number[], limitMs = Infinity): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (pids.some(isRunning)) {
    if (performance.now() > deadline) return false;
    await systemClock.sleep(pollIntervalMs);
  }
  return true;
}

function descendants(root: number): readonly number[] {
  const rows = listProcesses();
  const pids = [root];
  // The list grows while it is walked: children of children come to stand behind.
  for (const parent of pids) {
    for (const row of rows) if (row.parent === parent && !row.zombie) pids.push(row.pid);
  }
  return pids;
}

function listProcesses(): readonly ProcessRow[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => readProcess(Number(name)))
      .filter((row) => row !== undefined);
  }
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,stat='], { encoding: 'utf8' });
  return table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .map(([pid, parent, state]) => toRow(Number(pid), parent, state));
}

function readProcess(pid: number): ProcessRow | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    // Ended since it was listed.
    return undefined;
  }
  // The command's name stands in parentheses and may itself hold spaces and parentheses.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return toRow(pid, parent, state);
}

function toRow(pid: number, parent: string | undefined, state: string | undefined): ProcessRow {
  return { pid, parent: Number(parent), zombie: state === undefined || /^[ZX]/.test(state) };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // Already gone is what most of our signals want; everything else is a defect of ours.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
