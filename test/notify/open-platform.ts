// Separate from `our-ntfy.ts`, so that processes which only serve ntfy do not load the platform.

import { createPlatform, type Platform } from '../../src/platform/create-platform.ts';
import type { PlatformModule } from '../../src/platform/modules/platform-module.ts';
import { createTempFolder, removeTempFolder } from '../../src/testing/servers/temp-folder.ts';

/** A platform over a temporary folder; the stack disposes both. */
export async function openPlatform(
  opened: AsyncDisposableStack,
  modules: readonly PlatformModule[] = [],
): Promise<{ readonly folder: string; readonly platform: Platform }> {
  const folder = await createTempFolder('notify');
  opened.defer(() => removeTempFolder(folder));
  const engines = { store: `sqlite:${folder}/events.db` };
  const platform = opened.use(await createPlatform({ engines, modules }));
  await platform.start();
  return { folder, platform };
}
