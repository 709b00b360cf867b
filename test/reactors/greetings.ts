// A reactor whose command always repeats its effect: only the idempotency key prevents a second one.

import { z } from 'zod';
import {
  createCommandHandler,
  defineAggregate,
  type CommandRoles,
} from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { dispatchCommands, reactor, type SendCommand } from '../../src/reactors/index.ts';

const placed = defineEvent('order.placed.v1', z.object({}));
const sent = defineEvent('letter.sent.v1', z.object({}));
const send = defineCommand('letter.send', z.object({}));

const letter = defineAggregate({
  bc: 'shop',
  name: 'letter',
  version: 1,
  events: [sent],
  commands: [send],
  initial: 0,
  evolve: { 'letter.sent.v1': (count) => count + 1 },
  decide: { 'letter.send': () => sent({}) },
});

export const greetings = reactor({
  name: 'sub:shop:greetings:v1',
  events: [placed],
  from: 'start',
  onRejected: 'ignore',
  on: { 'order.placed.v1': ({ aggregate }) => ({ id: aggregate.id, command: send({}) }) },
});

/** No checkpoint is written before the process is killed. */
export const tuning = { leaseMs: 500, checkpointMs: 60_000, checkpointEvery: 1_000 } as const;

export function sendOver(roles: CommandRoles): SendCommand {
  return dispatchCommands({ letter: createCommandHandler(roles, letter) });
}
