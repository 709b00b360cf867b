// The stand-in as a process: `node stand-in-main.ts <folder> <preset> <port> start|kill|scavenge`.
// `start` starts it in the background and prints its connection string. With these verbs the command controls the
// server of test/engines/kurrentdb.engines.test.ts, as an operator's script controls a real one.

import { spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { presets, type Preset } from './fidelity.ts';
import { startStandIn } from './stand-in.ts';

const [folder = '', preset = '', port = '', verb = ''] = process.argv.slice(2);
if (!(preset in presets)) {
  throw new TypeError(`Unknown preset "${preset}". Known: ${Object.keys(presets).join(', ')}.`);
}
const state = join(folder, 'stand-in.json');

interface Running {
  readonly pid: number;
  readonly url: string;
}

switch (verb) {
  case 'serve':
    await serve();
    break;
  case 'start':
    process.stdout.write(`${(await startInBackground()).url}\n`);
    break;
  case 'kill':
    await kill();
    break;
  case 'scavenge':
    await scavenge();
    break;
  default:
    throw new TypeError(`Unknown verb "${verb}". Known: start, kill, scavenge.`);
}

async function serve(): Promise<void> {
  const { nodes } = presets[preset as Preset];
  const ports = Array.from({ length: nodes }, (_, index) => Number(port) + index);
  const file = join(folder, 'log');
  const server = await startStandIn({ preset: preset as Preset, file, ports });
  process.on('SIGUSR2', () => {
    server.scavenge();
    report();
  });
  const report = (): void =>
    writeFileSync(state, JSON.stringify({ pid: process.pid, url: server.url } satisfies Running));
  report();
}

async function startInBackground(): Promise<Running> {
  rmSync(state, { force: true });
  const log = openSync(join(folder, 'stand-in.log'), 'a');
  const script = fileURLToPath(import.meta.url);
  const args = [script, folder, preset, port, 'serve'];
  spawn(process.execPath, args, { detached: true, stdio: ['ignore', log, log] }).unref();
  return whenWritten();
}

/** The server writes its state again after it has scavenged. */
async function scavenge(): Promise<void> {
  const { pid } = running();
  rmSync(state);
  process.kill(pid, 'SIGUSR2');
  await whenWritten();
}

async function kill(): Promise<void> {
  const { pid } = running();
  process.kill(pid, 'SIGKILL');
  await poll(() => !isRunning(pid));
}

async function whenWritten(): Promise<Running> {
  await poll(() => existsSync(state) && readFileSync(state, 'utf8').endsWith('}'));
  return running();
}

function running(): Running {
  return JSON.parse(readFileSync(state, 'utf8')) as Running;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // No process has this id any more.
    return false;
  }
}

async function poll(isDone: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!isDone()) {
    if (performance.now() > deadline) throw new Error(`no answer; see ${folder}/stand-in.log`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
