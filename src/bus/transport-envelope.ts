// The envelope around a payload on the bus. One definition yields the type, the validation on both sides and the
// published JSON Schema (schemas/transport-envelope.json).

import type { Static, TString } from 'typebox';
import { Type } from '../contracts/type.ts';
import { validateSubject } from '../contracts/subject-match.ts';
import { compileSchema, problemsText } from '../contracts/schema.ts';
import { encodePayload } from '../contracts/json-payload.ts';
import { MillraceError } from '../foundation/error.ts';
import { parseJson } from '../foundation/parse-json.ts';
import { busLimits as limits } from './bus-limits.ts';

const text = (charsMax: number): TString =>
  Type.String({
    description: `1 to ${charsMax} characters, none of them a control character`,
    pattern: `^[^\\u0000-\\u001f\\u007f]{1,${charsMax}}$`,
  });
const time = (): TString =>
  Type.String({
    description: 'a time in UTC with milliseconds, such as 2026-02-14T10:00:00.000Z',
    pattern: '^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z$',
  });

const envelopeDefinition = Type.Object(
  {
    /** The version of the envelope; a consumer dead-letters messages with a newer version. */
    version: Type.Literal(1, { description: '1' }),
    id: text(limits.idCharsMax),
    subject: text(255),
    time: time(),
    /** `application/json` (default): `payload` is the value. Any other: `payload` is base64. */
    contentType: Type.Optional(text(255)),
    /** The version of the payload schema, set by the producer. */
    schemaVersion: Type.Optional(
      Type.Integer({ description: 'an integer, at least 1', minimum: 1 }),
    ),
    tenant: Type.Optional(text(64)),
    correlationId: Type.Optional(text(limits.idCharsMax)),
    causationId: Type.Optional(text(limits.idCharsMax)),
    traceparent: Type.Optional(
      Type.String({
        description: 'a W3C traceparent',
        pattern: '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}',
        maxLength: 512,
      }),
    ),
    tracestate: Type.Optional(text(1_024)),
    /** The subject for the reply. */
    replyTo: Type.Optional(text(255)),
    /** A request is not delivered after this time. */
    expiresAt: Type.Optional(time()),
    headers: Type.Optional(
      Type.Unsafe<Readonly<Record<string, string>>>({
        type: 'object',
        description: `at most ${limits.headersMax} texts of at most ${limits.headerCharsMax} characters`,
        maxProperties: limits.headersMax,
        additionalProperties: { type: 'string', maxLength: limits.headerCharsMax },
      }),
    ),
    payload: Type.Unsafe<unknown>({
      type: ['object', 'array', 'string', 'number', 'boolean', 'null'],
      description: 'a JSON value',
    }),
  },
  { additionalProperties: false },
);

/** Encoded as JSON in UTF-8. */
export type TransportEnvelope = Readonly<Static<typeof envelopeDefinition>>;

const schema = compileSchema(envelopeDefinition);

export const jsonContentType = 'application/json';

/** The published JSON Schema (2020-12) of the transport envelope. */
export const transportEnvelopeJsonSchema: Readonly<Record<string, unknown>> = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'urn:millrace:schemas:transport-envelope:v1',
  title: 'Transport envelope',
  ...(JSON.parse(JSON.stringify(envelopeDefinition)) as Record<string, unknown>),
};

/**
 * Encodes an envelope, or throws an error that names what is wrong.
 *
 * @example
 * import { encodeTransportEnvelope } from 'millrace/bus';
 *
 * const bytes = encodeTransportEnvelope({
 *   version: 1,
 *   id: '0199',
 *   subject: 'gbe.events.audit.change',
 *   time: '2026-02-14T10:00:00.000Z',
 *   payload: { table: 'accounts' },
 * });
 */
export function encodeTransportEnvelope(envelope: TransportEnvelope): Uint8Array {
  validateSubject(envelope.subject);
  // Checked first, so that the error names the path within the payload.
  encodePayload(envelope.payload, { payloadBytesMax: limits.messageBytesMax });
  const problem = problemOf(envelope);
  if (problem !== undefined) throw problem;
  // Not a Buffer: posting it to another thread would copy the whole pool it is part of.
  const bytes = encoder.encode(JSON.stringify(envelope));
  checkMessageSize(bytes);
  return bytes;
}

export function checkMessageSize(bytes: Uint8Array): void {
  if (bytes.length <= limits.messageBytesMax) return;
  throw new MillraceError(
    'PAYLOAD_TOO_LARGE',
    `the message has ${bytes.length} bytes including its envelope; the limit is ${limits.messageBytesMax}. Store the content elsewhere and send a reference`,
    { details: { bytes: bytes.length, messageBytesMax: limits.messageBytesMax } },
  );
}

/**
 * Decodes an envelope, or throws `ENVELOPE_INVALID` with all problems, and no other error.
 *
 * @example
 * import { decodeTransportEnvelope } from 'millrace/bus';
 * import { hasCode } from 'millrace/foundation';
 *
 * try {
 *   decodeTransportEnvelope(Buffer.from('{}'));
 * } catch (error) {
 *   console.log(hasCode(error, 'ENVELOPE_INVALID')); // true
 * }
 */
export function decodeTransportEnvelope(bytes: Uint8Array): TransportEnvelope {
  let value: unknown;
  try {
    value = parseJson(utf8.decode(bytes));
  } catch (cause) {
    const message = 'not a transport envelope: it is not JSON in UTF-8, or nested too deeply';
    throw new MillraceError('ENVELOPE_INVALID', message, { cause });
  }
  const problem = problemOf(value);
  if (problem !== undefined) throw problem;
  return value as TransportEnvelope;
}

const encoder = new TextEncoder();
const utf8 = new TextDecoder('utf-8', { fatal: true });

function problemOf(value: unknown): MillraceError | undefined {
  const problems = schema.check(value) ? semanticProblems(value) : schema.problems(value);
  if (problems.length === 0) return undefined;
  return new MillraceError(
    'ENVELOPE_INVALID',
    `not a transport envelope: ${problemsText(problems)}`,
    {
      details: { problems },
    },
  );
}

/** Problems that the patterns cannot detect: an impossible date, and invalid base64. */
function semanticProblems(
  envelope: TransportEnvelope,
): readonly { path: string; message: string }[] {
  const { contentType = jsonContentType, payload } = envelope;
  for (const field of ['time', 'expiresAt'] as const) {
    const timestamp = envelope[field];
    if (timestamp === undefined) continue;
    const ms = Date.parse(timestamp);
    if (Number.isNaN(ms) || new Date(ms).toISOString() !== timestamp) {
      return [{ path: `/${field}`, message: 'must be an existing time' }];
    }
  }
  const isBytes = typeof payload === 'string' && base64.test(payload);
  return isJson(contentType) || isBytes
    ? []
    : [{ path: '/payload', message: `must be base64 because its content type is ${contentType}` }];
}

const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** `application/json` and types with the suffix `+json`, with or without parameters. */
export function isJson(contentType: string): boolean {
  return /^application\/(?:[^;]+\+)?json *(?:;|$)/i.test(contentType);
}
