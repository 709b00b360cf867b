// The contact addresses of a customer: personal data that can be erased. Addresses are not stored in the inbox, and no other
// event, message or job contains them.

import { defineAggregate } from 'millrace/aggregates';
import { changeContact, contactChanged } from './customer-events.ts';

export interface CustomerContact {
  readonly email?: string;
  readonly webhookUrl?: string;
  /** The name of an ntfy-compatible topic. */
  readonly topic?: string;
}

const noContact: CustomerContact = {};

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
  initial: noContact,
  dataSubject: customerSubject,
  evolve: { 'customer-contact.changed.v1': (_before, contact): CustomerContact => contact },
  decide: { 'customer-contact.change': (contact) => contactChanged(contact) },
});

/**
 * The data subject of a customer's contact events: `millrace forget <subject>` erases them.
 *
 * @example
 * import { customerSubject } from 'millrace/customers';
 *
 * console.log(customerSubject('core', 'cust_1')); // notify:customer:core:cust_1
 */
export function customerSubject(tenant: string, customerId: string): string {
  return `notify:customer:${tenant}:${customerId}`;
}
