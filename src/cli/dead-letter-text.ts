// A dead letter for people: one line in a list, everything on its own page.

import type { DeadLetter } from '../subscriptions/dead-letter.ts';
import type { Paint } from './paint.ts';

export function letterLine(letter: DeadLetter, paint: Paint): string {
  const { id, createdAt, eventType, stream, handler, attempts } = letter;
  const error = letter.error.split('\n')[0] ?? '';
  return `${paint.bold(id)}  ${createdAt}  ${stateOf(letter, paint)}  ${paint.cyan(eventType)}  ${stream}
  ${handler}, ${attempts} attempts: ${error}
`;
}

export function letterPage(letter: DeadLetter, paint: Paint): string {
  const rows: readonly (readonly [string, string | number | null])[] = [
    ['id', letter.id],
    ['status', stateOf(letter, paint)],
    ['subscription', letter.handler],
    ['event', `${letter.eventType} ${letter.eventId}`],
    ['stream', `${letter.stream} @${letter.revision}, position ${letter.position}`],
    ['tenant', letter.tenant],
    ['correlation', letter.correlationId],
    ['created', letter.createdAt],
    ['parked', letter.parked ? 'later events of the aggregate wait' : null],
    ['replay asked', letter.replayRequestedAt],
    ['replayed', letter.replayedAt],
    ['by', letter.replayedBy],
    ['discarded', letter.discardedAt],
    ['by', letter.discardedBy],
    ['reason', letter.discardReason],
    ['notes', letter.notes === '' ? null : letter.notes],
    ['error', letter.error],
    ['attempts', letter.attempts],
  ];
  const lines = rows
    .filter(([, value]) => value !== null)
    .map(([title, value]) => `${paint.cyan(title.padEnd(14))}${value}`);
  const history = letter.history.map(({ at, error }) => `  ${at}  ${error.split('\n')[0] ?? ''}`);
  const payload = JSON.stringify(letter.payload, null, 2);
  return `${[...lines, ...history, paint.cyan('payload'), payload].join('\n')}\n`;
}

function stateOf({ status, replayRequestedAt }: DeadLetter, paint: Paint): string {
  if (status === 'replayed') return paint.green(status);
  if (status === 'discarded') return paint.dim(status);
  return paint.red(replayRequestedAt === null ? status : 'pending, replay asked for');
}
