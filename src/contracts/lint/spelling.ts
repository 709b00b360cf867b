// Guesses the spelling that was meant: for suggestions only, never for a decision.

import { kebabCase } from '../identifier.ts';
import type { Parameter } from './builders.ts';

/** `PaymentRequest`, `payment_request`, `PAYMENT-REQUEST`, `HTTPCall` → kebab-case. */
export function guessIdentifier(text: string): string {
  const words = text
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1-$2')
    .toLowerCase();
  return kebabCase(words);
}

/** The nearest text that the parameter would take; ids are data, nobody can guess those. */
export function guessArgument(parameter: Parameter, text: string): string {
  switch (parameter) {
    case 'identifier':
      return guessIdentifier(text);
    case 'tenant':
      return text
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '-')
        .replace(/^-|-$/g, '');
    case 'version':
      return text.replace(/^0+(?=\d)/, '').replace(/^0$/, '1');
    default:
      return text;
  }
}
