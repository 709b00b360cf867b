// Defaults and bounds of what customers are told, in one place.

/**
 * How much one customer can be told, and how much of it can wait.
 *
 * @example
 * import { customerLimits } from 'millrace/customers';
 *
 * console.log(customerLimits.heldMax); // 500
 */
export const customerLimits = {
  titleCharsMax: 250,
  bodyCharsMax: 4_096,
  keyCharsMax: 128,
  /** Alike messages within this are one, where the sender says nothing else. */
  mergeMsDefault: 5 * 60_000,
  mergeMsMax: 7 * 86_400_000,
  /** Keys whose windows are open; the oldest one is forgotten, and its next message is a new one. */
  mergesMax: 500,
  /** Queued for the end of the quiet hours; more are refused, none is dropped. */
  heldMax: 500,
  digestMsMin: 1_000,
  digestMsMax: 31 * 86_400_000,
  /** Digests that are open at once. */
  digestsMax: 100,
  /** Of a digest, listed by title; the others are counted. */
  digestItemsMax: 100,
  nagMsMin: 1_000,
  nagMsMax: 7 * 86_400_000,
  nagTimesMax: 100,
  /** That are reminded of until they are acknowledged. */
  nagsMax: 200,
  /** The latest, whose ids are known: they can be acknowledged, and are not taken twice. */
  recentMax: 500,
  quietWindowsMax: 28,
  /** What one command brings to its end; the rest follows at once, in the next. */
  eventsPerCommand: 100,
  /** After a wake-up that came too early by the clock of whoever got it. */
  earlyWakeMs: 1_000,
} as const;
