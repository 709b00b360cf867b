// `millrace stream append`: one event by hand, in a whole envelope.

import { parseStreamName, type ParsedStreamName } from '../contracts/stream-name.ts';
import { MillraceError } from '../foundation/error.ts';
import { exitCodes, readArgs, usage, type Command, type CommandContext } from './command.ts';
import { expectedRevision, pairs } from './option-values.ts';
import { jsonOption, openStore, storeOption, storeSections } from './store-option.ts';
import { streamArgument } from './stream-argument.ts';

const options = {
  ...storeOption,
  type: { type: 'string', value: 'event-type', summary: 'such as currency.renamed.v1' },
  data: { type: 'string', value: 'json', summary: 'the payload; - reads it from stdin' },
  expected: {
    type: 'string',
    value: 'revision',
    summary: 'any (default), none, exists, or the revision of the last event',
  },
  tenant: { type: 'string', value: 'key', summary: "where the stream's name cannot tell: demo-za" },
  'event-id': { type: 'string', value: 'id', summary: 'repeats with one id are appended once' },
  correlation: { type: 'string', value: 'id', summary: 'the flow that it belongs to (a new one)' },
  causation: { type: 'string', value: 'id', summary: 'the event or command that caused it' },
  'idempotency-key': { type: 'string', value: 'key', summary: 'of the request behind it' },
  user: { type: 'string', value: 'id', summary: 'who did it' },
  header: {
    type: 'string',
    multiple: true,
    value: 'name=value',
    summary: 'any number of times; dataSubject=<id> seals the payload',
  },
  ...jsonOption,
} as const;

/** Far above what a store takes; what it does take, it says itself. */
const inputCharsMax = 64 * 1_048_576;

export const streamAppendCommand: Command = {
  name: 'stream append',
  summary: 'appends an event to a stream',
  usage: 'stream append <stream> --type <event-type> --data <json|-> [options]',
  options,
  examples: [
    `millrace stream append banking.currency.v1-core-USD --type currency.created.v1 --data '{"name":"Dollar"}'`,
    'millrace stream append banking.currency.v1-core-USD --type currency.renamed.v1 --data - --expected 0 < payload.json',
  ],
  sections: storeSections,
  async run(context) {
    const { stdout, signal, paint } = context;
    const { values, positionals } = readArgs(
      { name: 'stream append', args: context.args },
      options,
    );
    const stream = streamArgument('stream append', positionals);
    const { type, data, tenant, correlation, causation, user } = values;
    if (type === undefined) throw usage('stream append needs --type, such as currency.created.v1');
    if (data === undefined) throw usage(`stream append needs --data, such as '{"name":"Dollar"}'`);
    const expected = expectedRevision(values.expected);
    const headers = values.header === undefined ? undefined : pairs('header', values.header);
    const parts = partsOf(stream, tenant);
    const payload = parsePayload(data === '-' ? await readInput(context) : data);
    const { createEnvelope } = await import('../contracts/envelope.ts');
    const envelope = createEnvelope(
      { type, payload },
      {
        tenant: parts.tenant,
        aggregate: { bc: parts.bc, type: parts.agg, id: parts.id },
        ...(values['event-id'] === undefined ? {} : { eventId: values['event-id'] }),
        ...(correlation === undefined ? {} : { correlationId: correlation }),
        ...(causation === undefined ? {} : { causationId: causation }),
        ...(values['idempotency-key'] === undefined
          ? {}
          : { idempotencyKey: values['idempotency-key'] }),
        ...(user === undefined ? {} : { user: { id: user } }),
        ...(headers === undefined ? {} : { headers }),
      },
    );
    await using store = await openStore(context, values.store);
    const { revision, position, repeated } = await store.append(stream, [envelope], {
      signal,
      ...(expected === undefined ? {} : { expected }),
    });
    const { eventId } = envelope;
    stdout.write(
      values.json === true
        ? `${JSON.stringify({ stream, eventId, revision, position, repeated })}\n`
        : `${paint.green(repeated ? 'was there already:' : 'appended')} ${type} at revision ${revision} of ${stream}\n`,
    );
    return exitCodes.ok;
  },
};

/** A tenant with a hyphen must be told; then the name must be that tenant's. */
function partsOf(stream: string, tenant: string | undefined): ParsedStreamName {
  if (tenant === undefined) return parseStreamName(stream);
  const parts = parseStreamName(stream, new Set([tenant]));
  if (parts.tenant === tenant) return parts;
  throw new MillraceError(
    'TENANT_MISMATCH',
    `stream '${stream}' belongs to tenant '${parts.tenant}', not to '${tenant}'`,
    { details: { stream, tenant } },
  );
}

async function readInput({ stdin }: CommandContext): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of stdin()) {
    text += typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    if (text.length > inputCharsMax) throw usage('--data from stdin is too large for an event');
  }
  return text + decoder.decode();
}

function parsePayload(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw usage('--data is not JSON', { cause: error });
  }
}
