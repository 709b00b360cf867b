export { createNtfyHandler, type NtfyHandler, type NtfyHandlerOptions } from './ntfy-handler.ts';
export { defaultAccessOf, openNtfy, type OpenNtfyOptions } from './open-ntfy.ts';
export { startNtfyServer, type NtfyServer, type NtfyServerOptions } from './start-ntfy-server.ts';
