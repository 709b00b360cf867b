// What a rule gets and gives.

import type { Report } from './finding.ts';
import type { Place } from './place.ts';
import type { Spot } from './spot.ts';
import type { Text } from './text.ts';

export interface Imported {
  readonly name: string;
  readonly module: string;
}

export interface RuleContext {
  readonly roots: readonly string[];
  /** What a local name stands for, where it is imported. */
  readonly imports: ReadonlyMap<string, Imported>;
}

/** A text and, worked out only when a rule asks, what it is used for. */
export interface Candidate {
  readonly text: Text;
  readonly place: Place;
}

export type TextRule = (candidate: Candidate, context: RuleContext) => Report | undefined;
export type CallRule = (spot: Spot, context: RuleContext) => readonly Report[];
