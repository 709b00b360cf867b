// Signals a server and all of its children: PostgreSQL's backends leave the process group of their parent, so a group
// kill would miss them.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { systemClock } from '../../foundation/clock.ts';

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** The process has ended, but its parent has not collected it yet. */
  readonly zombie: boolean;
}

const pollIntervalMs = 5;
const stoppedWithinMs = 5_000;
const pause = new Int32Array(new SharedArrayBuffer(4));

/** Sends the signal to the process and all descendants; returns their pids. */
export function signalTree(pid: number, signal: NodeJS.Signals): readonly number[] {
  // Stopped first, the root cannot fork a child that the list would miss.
  send(pid, 'SIGSTOP');
  const pids = descendants(pid);
  for (const each of pids) send(each, signal);
  return pids;
}

/**
 * Stops the process and all descendants, and waits for every thread: a thread that waits for the disk or a core may run
 * once more after the signal.
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
    // The process has ended.
    return false;
  }
}

export interface TreeEnd {
  /** The first signal to the root; SIGKILL ends the whole tree at once. */
  readonly signal: NodeJS.Signals;
  /** How long the root may take before the whole tree is killed. */
  readonly graceMs: number;
}

/** Resolves when the process and its children have ended, by force if necessary. */
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

/** Whether the process still runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  const row =
    process.platform === 'linux'
      ? readProcess(pid)
      : listProcesses().find((each) => each.pid === pid);
  return row !== undefined && !row.zombie;
}

/** Resolves to whether all of them ended in time. */
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
  // The list grows during the iteration: children of children are appended.
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
  // The name of the command is in parentheses and may itself contain spaces and parentheses.
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
    // ESRCH is expected, because most signals are meant to end the process.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}
