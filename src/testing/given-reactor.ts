// Given-when-then tests of reactors: an event, and the commands that follow from it.

import { assertEqual } from './assertions.ts';
import type { NewCommand } from '../contracts/define-command.ts';
import type { NewEvent } from '../contracts/envelope.ts';
import type { Reaction } from '../reactors/reaction.ts';
import type { Reactor } from '../reactors/reactor.ts';
import { givenEvent, givenNowMs } from './given-event.ts';

/** A command and the id of its aggregate. */
export interface SentCommand {
  readonly id: string;
  readonly command: NewCommand;
  readonly tenant?: string | undefined;
}

export interface WhenReactor {
  /** Fails unless exactly these commands follow, in this order; `[]`: none. */
  thenSends(expected: readonly SentCommand[]): Promise<void>;
}

export interface GivenReactor {
  /** `id` is the id of the event's aggregate. */
  when(event: NewEvent, options?: { readonly id?: string }): WhenReactor;
}

/**
 * Starts a test of a reactor, without a store and without sending commands.
 *
 * @example
 * import { defineCommand, defineEvent } from 'millrace/contracts';
 * import { reactor } from 'millrace/reactors';
 * import { givenReactor } from 'millrace/testing';
 * import { z } from 'zod';
 *
 * const opened = defineEvent('account.opened.v1', z.object({}));
 * const greet = defineCommand('letter.send', z.object({}));
 * const greetings = reactor({
 *   name: 'sub:banking:greetings:v1',
 *   events: [opened],
 *   from: 'end',
 *   onRejected: 'ignore',
 *   on: { 'account.opened.v1': ({ aggregate }) => ({ id: aggregate.id, command: greet({}) }) },
 * });
 *
 * await givenReactor(greetings)
 *   .when(opened({}), { id: 'a1' })
 *   .thenSends([{ id: 'a1', command: greet({}) }]);
 */
export function givenReactor(reactor: Reactor): GivenReactor {
  return {
    when(event, { id = 'given' } = {}) {
      const thenSends: WhenReactor['thenSends'] = async (expected) => {
        const recorded = givenEvent(event, { index: 0, nowMs: givenNowMs, id });
        const { signal } = new AbortController();
        const reactions = await reactor.react(recorded, { attempt: 1, signal });
        assertEqual(reactions.map(plainCommand), expected.map(plainCommand), thenSends);
      };
      return { thenSends };
    },
  };
}

export function plainCommand({ id, command, tenant }: SentCommand | Reaction): SentCommand {
  const { type, payload } = command;
  return { id, command: { type, payload }, tenant };
}
