// Subscription names, `sub:<service>:<name>:v<version>`: a checkpoint is stored under this name.

import {
  checkIdentifier,
  checkLength,
  checkVersion,
  identifierPattern,
  nameInvalid,
  nameLimits,
  versionPattern,
  type Identifier,
} from './identifier.ts';

export interface ParsedSubscriptionName {
  readonly service: string;
  readonly name: string;
  readonly version: number;
}

const subscriptionName = new RegExp(
  `^sub:(${identifierPattern}):(${identifierPattern}):v(${versionPattern})$`,
);

/**
 * Builds the stable name of a projection's or workflow's subscription.
 *
 * @example
 * import { buildSubscriptionName } from 'millrace/contracts';
 *
 * console.log(buildSubscriptionName('core-lookup', 'currency-projection', 1)); // sub:core-lookup:currency-projection:v1
 */
export function buildSubscriptionName<const Service extends string, const Name extends string>(
  service: Identifier<Service>,
  name: Identifier<Name>,
  v: number,
): string {
  checkIdentifier('service', service);
  checkIdentifier('subscription', name);
  checkVersion(v);
  const built = `sub:${service}:${name}:v${v}`;
  checkLength(built, nameLimits.streamCharsMax);
  return built;
}

/**
 * Parses a subscription name.
 *
 * @example
 * import { parseSubscriptionName } from 'millrace/contracts';
 *
 * const { service, version } = parseSubscriptionName('sub:payments:payment-projection:v1');
 */
export function parseSubscriptionName(text: string): ParsedSubscriptionName {
  const match = text.length <= nameLimits.streamCharsMax ? subscriptionName.exec(text) : null;
  if (match === null) {
    throw nameInvalid(
      'subscription',
      text,
      'must be sub:<service>:<name>:v<version> in kebab-case',
    );
  }
  const [, service = '', name = '', version = ''] = match;
  return { service, name, version: Number(version) };
}
