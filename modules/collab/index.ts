// The names that applications use.

export { collab, type CollabOptions } from './collab.ts';
export { createChat, messagePosted, postMessage } from './chat-events.ts';
export { composeMail } from './notifications/notifier.ts';
export { ensureUser } from './user.ts';
export { addMember, createWorkspace } from './workspace-events.ts';
