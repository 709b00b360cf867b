// What an invite is opened with: where it belongs to, and a secret of which only a hash is kept.

import { createHash, randomBytes } from 'node:crypto';

export interface InviteToken {
  readonly workspaceId: string;
  readonly inviteId: string;
  readonly tokenHash: string;
}

/** The token is shown once, by whoever made it. */
export function newInviteToken(
  place: Pick<InviteToken, 'workspaceId' | 'inviteId'>,
  secret: string = randomBytes(32).toString('base64url'),
): InviteToken & { readonly token: string } {
  const { workspaceId, inviteId } = place;
  return {
    ...place,
    tokenHash: hashOf(secret),
    // No id holds the sign between them.
    token: `${workspaceId}~${inviteId}~${secret}`,
  };
}

/** Undefined: it is no token of ours. */
export function parseInviteToken(token: string): InviteToken | undefined {
  const [, workspaceId, inviteId, secret] =
    /^([A-Za-z0-9._-]{1,64})~([A-Za-z0-9._-]{1,64})~([A-Za-z0-9_-]{43})$/.exec(token) ?? [];
  if (workspaceId === undefined || inviteId === undefined || secret === undefined) return undefined;
  return { workspaceId, inviteId, tokenHash: hashOf(secret) };
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
