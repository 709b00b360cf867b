// How tasks ask Redis: as the bus does, with errors in the words of tasks.

import { hasCode, MillraceError } from '../../foundation/error.ts';
import type { BusCalls, ScriptValue } from './redis-bus-calls.ts';
import type { RedisConnection } from './redis-connection.ts';
import { runScript, runScriptForBytes, type RedisScript } from './redis-script.ts';

export interface TaskCalls extends BusCalls {
  /** Bulk strings come as texts: everything of a job is one. */
  runText(
    script: RedisScript,
    keys: readonly string[],
    values: readonly ScriptValue[],
  ): Promise<unknown>;
}

export function createTaskCalls(connection: RedisConnection): TaskCalls {
  const ask: TaskCalls['ask'] = async (call) => {
    try {
      return await connection.ask(call);
    } catch (error) {
      throw tasksError(error);
    }
  };
  return {
    client: connection.client,
    ask,
    run: (script, keys, values) => ask((client) => runScriptForBytes(client, script, keys, values)),
    runText: (script, keys, values) => ask((client) => runScript(client, script, keys, values)),
  };
}

export function tasksError(error: unknown): unknown {
  if (hasCode(error, 'STORE_CLOSED')) {
    return new MillraceError('TASKS_CLOSED', 'the tasks were closed');
  }
  if (!(error instanceof MillraceError) || error.code !== 'STORE_UNAVAILABLE') return error;
  const { message, retryable, details } = error;
  return new MillraceError('TASKS_UNAVAILABLE', message, { cause: error, retryable, details });
}
