// A text read as the call of the builder that would have made it: the call's code is the
// suggestion, and its value, when nothing is computed, is the right spelling.

import { attempt, builders, type Builder, type BuilderName, type Outcome } from './builders.ts';
import { guessArgument } from './spelling.ts';
import { fragmentCode, hasHole, versionCode, type Text } from './text.ts';

export interface Reading {
  readonly builder: BuilderName;
  /** Pieces of the text's form, or a call whose result is the argument. */
  readonly parts: readonly (string | Reading)[];
}

/** The code of the call, with the expressions of the source; `undefined` if a part is unclear. */
export function readingCode(reading: Reading, text: Text): string | undefined {
  const codes = reading.parts.map((part, index) =>
    typeof part === 'string'
      ? partCode(part, parameterAt(reading, index), text)
      : readingCode(part, text),
  );
  return codes.includes(undefined) ? undefined : `${reading.builder}(${codes.join(', ')})`;
}

/** Runs the builder on the written parts, mended where that can be guessed. */
export function buildReading(reading: Reading, mode: 'as-written' | 'mended'): Outcome {
  const args: unknown[] = [];
  for (const [index, part] of reading.parts.entries()) {
    if (typeof part !== 'string') {
      const inner = buildReading(part, mode);
      if (!inner.ok) return inner;
      args.push(inner.value);
      continue;
    }
    const parameter = parameterAt(reading, index);
    const value = mode === 'mended' ? guessArgument(parameter, part) : part;
    args.push(parameter === 'version' ? Number(value) : value);
  }
  return attempt(builders[reading.builder].build, args);
}

function parameterAt({ builder }: Reading, index: number): Builder['parameters'][number] {
  const parameters: Builder['parameters'] = builders[builder].parameters;
  return parameters[index] ?? 'name';
}

function partCode(
  part: string,
  parameter: Builder['parameters'][number],
  text: Text,
): string | undefined {
  if (part === '') return undefined;
  if (parameter === 'version') return versionCode(part, text);
  // A hash cannot be turned back into the filters that the builder wants.
  if (parameter === 'filters') return filtersCode(part, text);
  return fragmentCode(hasHole(part) ? part : guessArgument(parameter, part), text);
}

function filtersCode(part: string, text: Text): string {
  const hashed = /^filtersHash\((.+)\)$/s.exec(fragmentCode(part, text))?.[1];
  return hashed ?? 'filters';
}
