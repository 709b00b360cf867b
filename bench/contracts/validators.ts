// The peers of envelope validation: compiled ajv on our published schema, and zod with an equivalent
// schema.

import { envelopeJsonSchema } from '../../src/contracts/index.ts';
import { importPeer } from '../peers.ts';

export type IsValid = (value: unknown) => boolean;

interface Ajv {
  compile(schema: object): IsValid;
}
type AjvConstructor = new (options: object) => Ajv;
type AddFormats = (ajv: Ajv) => void;

export async function ajvValidator(): Promise<IsValid> {
  const { Ajv2020 } = await importPeer<{ Ajv2020: AjvConstructor }>('ajv/dist/2020.js');
  const formats = await importPeer<{ default: AddFormats | { default: AddFormats } }>(
    'ajv-formats',
  );
  const addFormats = 'default' in formats.default ? formats.default.default : formats.default;
  const ajv = new Ajv2020({ allowUnionTypes: true });
  addFormats(ajv);
  return ajv.compile(envelopeJsonSchema);
}

interface ZodType {
  optional(): ZodType;
  max(length: number): ZodType;
  refine(check: (value: unknown) => boolean): ZodType;
  safeParse(value: unknown): { readonly success: boolean };
}
type ZodFields = Readonly<Record<string, ZodType>>;
interface Zod {
  string(): ZodType & { regex(pattern: RegExp): ZodType };
  number(): ZodType;
  unknown(): ZodType;
  strictObject(fields: ZodFields): ZodType;
  looseObject(fields: ZodFields): ZodType;
  readonly iso: { datetime(options: { readonly offset: boolean }): ZodType };
}

export async function zodValidator(): Promise<IsValid> {
  const { z } = await importPeer<{ z: Zod }>('zod');
  // oxlint-disable-next-line no-control-regex -- the pattern rejects control characters
  const printable = /^[^\u0000-\u001f\u007f]+$/;
  const text = (charsMax: number): ZodType => z.string().regex(printable).max(charsMax);
  const identifier = z
    .string()
    .regex(/^[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*$/)
    .max(100);
  const anyText = z.string().optional();
  const schema = z.strictObject({
    type: z
      .string()
      .regex(
        /^[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*\.[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)*\.v[1-9][0-9]{0,8}$/,
      )
      .max(120),
    eventId: text(100),
    occurredAt: z.iso.datetime({ offset: true }),
    correlationId: text(120),
    causationId: text(120).optional(),
    idempotencyKey: text(255).optional(),
    tenant: z
      .string()
      .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
      .max(60),
    aggregate: z.looseObject({
      bc: identifier,
      type: identifier,
      id: z
        .string()
        .regex(/^[A-Za-z0-9._-]+$/)
        .max(200),
      version: z.number().optional(),
    }),
    user: z
      .looseObject({
        id: anyText,
        email: anyText,
        name: anyText,
        tenant: anyText,
        tenantId: anyText,
      })
      .optional(),
    headers: z.looseObject({}).optional(),
    // Copying a payload member by member would slow zod down without checking more.
    payload: z.unknown().refine((value) => value !== undefined),
  });
  return (value) => schema.safeParse(value).success;
}

/** A validator with other results would win or lose for the wrong reason. */
export function checkVerdicts(
  documents: readonly unknown[],
  expected: boolean,
  validators: Readonly<Record<string, IsValid>>,
): void {
  for (const document of documents) {
    for (const [name, isValid] of Object.entries(validators)) {
      if (isValid(document) === expected) continue;
      throw new Error(`${name} should return ${expected} for ${JSON.stringify(document)}`);
    }
  }
}
