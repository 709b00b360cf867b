/**
 * Defaults and limits of notifications and inboxes.
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
  /** The default merge window of notifications with the same key. */
  mergeMsDefault: 5 * 60_000,
  mergeMsMax: 7 * 86_400_000,
  /** Open merge windows per inbox; the oldest is dropped, and its next message is a new notification. */
  mergesMax: 500,
  /** Notifications held until the end of the quiet hours; further ones are rejected. */
  heldMax: 500,
  digestMsMin: 1_000,
  digestMsMax: 31 * 86_400_000,
  /** Open digests per inbox. */
  digestsMax: 100,
  /** Titles listed in a digest; further ones are counted only. */
  digestItemsMax: 100,
  nagMsMin: 1_000,
  nagMsMax: 7 * 86_400_000,
  nagTimesMax: 100,
  /** Notifications with pending reminders per inbox. */
  nagsMax: 200,
  /** Latest notification ids that an inbox remembers, to detect duplicates and accept acknowledgements. */
  recentMax: 500,
  quietWindowsMax: 28,
  /** Events of due work per command; the next command continues. */
  eventsPerCommand: 100,
  /** Extra delay after a wake-up that was too early by the local clock. */
  earlyWakeMs: 1_000,
} as const;
