// Runs the application as a separate process.

import { childInput, tellParent } from 'millrace/testing';
import type { AppSettings } from './app-settings.ts';
import { createApp } from './create-app.ts';

const app = await createApp(childInput() as AppSettings);
tellParent({ url: await app.getUrl() });
