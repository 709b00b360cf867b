// 64-bit numbers of the wire. JavaScript and our stores are exact up to 2^53.

/** A 64-bit field, as protobufjs decodes it. */
export interface Long {
  readonly low: number;
  readonly high: number;
  readonly unsigned: boolean;
}

/** Larger numbers than a store can have mean "the end"; their exact values do not matter. */
export function toCount(value: number | Long): number {
  const exact = typeof value === 'number' ? value : toFloat(value);
  return Math.min(exact, Number.MAX_SAFE_INTEGER);
}

export function toBigInt(value: number | Long): bigint {
  if (typeof value === 'number') return BigInt(value);
  const bits = (BigInt(value.high >>> 0) << 32n) | BigInt(value.low >>> 0);
  return value.unsigned ? bits : BigInt.asIntN(64, bits);
}

function toFloat({ low, high, unsigned }: Long): number {
  return (unsigned ? high >>> 0 : high) * 0x1_0000_0000 + (low >>> 0);
}
