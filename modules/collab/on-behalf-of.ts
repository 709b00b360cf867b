import type { DomainEventEnvelope } from 'millrace/contracts';

type User = NonNullable<DomainEventEnvelope['user']>;

/** Whoever an event goes back to is also whom what follows from it goes back to. */
export function onBehalfOf(user: User | undefined): { readonly user?: User } {
  return user === undefined ? {} : { user };
}
