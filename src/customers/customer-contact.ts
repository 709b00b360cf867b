// Where a customer can be reached. Apart from the inbox: these are personal data, and can be forgotten; no other
// event, message or job repeats them. They are looked up when something is sent.

import { defineAggregate } from '../aggregates/define-aggregate.ts';
import { changeContact, contactChanged } from './customer-events.ts';

export interface CustomerContact {
  readonly email?: string;
  readonly webhookUrl?: string;
  /** Of the ntfy-compatible topics. */
  readonly topic?: string;
}

const nowhere: CustomerContact = {};

/**
 * The aggregate `customer-contact`; its id is the customer's.
 *
 * @example
 * import { customerCommands, customerContact } from 'millrace/customers';
 * import { given } from 'millrace/testing';
 *
 * given(customerContact, [])
 *   .when(customerCommands.changeContact({ topic: 'ops' }))
 *   .thenState({ topic: 'ops' });
 */
export const customerContact = defineAggregate({
  bc: 'notify',
  name: 'customer-contact',
  version: 1,
  events: [contactChanged],
  commands: [changeContact],
  initial: nowhere,
  dataSubject: customerSubject,
  evolve: { 'customer-contact.changed.v1': (_before, contact): CustomerContact => contact },
  decide: { 'customer-contact.change': (contact) => contactChanged(contact) },
});

/**
 * Whose personal data the events of a contact hold: `millrace forget <subject>`.
 *
 * @example
 * import { customerSubject } from 'millrace/customers';
 *
 * console.log(customerSubject('core', 'cust_1')); // notify:customer:core:cust_1
 */
export function customerSubject(tenant: string, customerId: string): string {
  return `notify:customer:${tenant}:${customerId}`;
}
