// Messages of the protocol as tables of fields. A table gives the encoding (`load-protocol.ts`) and, through `Wire`, the
// TypeScript type. Members of a `oneof` are optional fields here: the wire format is the same, and an absent member is
// undefined instead of zero. Unused fields of KurrentDB's messages are left out.

import type { Long } from './wire-number.ts';

interface Scalars {
  readonly string: string;
  readonly bytes: Uint8Array;
  readonly bool: boolean;
  readonly int32: number;
  readonly uint32: number;
  readonly double: number;
  /** Encoders accept numbers, decoders return Longs. */
  readonly int64: number | Long;
  readonly uint64: number | Long;
  readonly sint64: number | Long;
}

type Scalar = keyof Scalars;

/** A message: its fields by name. */
export type Fields = Readonly<Record<string, Field>>;

/** A field that may be absent is undefined then; other fields have the default of their type. */
type Presence = 'always' | 'maybe';

export interface Field<Value = unknown, Has extends Presence = Presence> {
  readonly id: number;
  readonly of: Scalar | Fields | Recursive<unknown>;
  readonly kind: 'one' | 'list' | 'map';
  readonly has: Has;
  /** Only in the type. */
  readonly value?: Value;
}

/** A message that contains itself: its type cannot be derived. */
export type Recursive<Value> = (() => Fields) & { readonly value?: Value };

type ValueOf<Of> = Of extends Scalar
  ? Scalars[Of]
  : Of extends Recursive<infer Value>
    ? Value
    : Of extends Fields
      ? Wire<Of>
      : never;

export type Empty = Readonly<Record<string, never>>;

/** The decoded form of a message. */
export type Wire<Message extends Fields> = keyof Message extends never
  ? Empty
  : {
      readonly [
        Name in keyof Message as Message[Name]['has'] extends 'always' ? Name : never
      ]: NonNullable<Message[Name]['value']>;
    } & {
      readonly [Name in keyof Message as Message[Name]['has'] extends 'always' ? never : Name]?:
        | Message[Name]['value']
        | undefined;
    };

/** Messages may be absent, scalars have a default. */
export function one<Of extends Field['of']>(
  id: number,
  of: Of,
): Field<ValueOf<Of>, Of extends Scalar ? 'always' : 'maybe'> {
  const has = typeof of === 'string' ? 'always' : 'maybe';
  return { id, of, kind: 'one', has: has as Of extends Scalar ? 'always' : 'maybe' };
}

export function maybe<Of extends Scalar>(id: number, of: Of): Field<Scalars[Of], 'maybe'> {
  return { id, of, kind: 'one', has: 'maybe' };
}

export function list<Of extends Field['of']>(
  id: number,
  of: Of,
): Field<readonly ValueOf<Of>[], 'always'> {
  return { id, of, kind: 'list', has: 'always' };
}

/** With strings as keys. */
export function map<Of extends Field['of']>(
  id: number,
  of: Of,
): Field<Readonly<Record<string, ValueOf<Of>>>, 'always'> {
  return { id, of, kind: 'map', has: 'always' };
}
