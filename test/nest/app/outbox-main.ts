// Runs the application of the outbox document as a process.

import { NestFactory } from '@nestjs/core';
import { tellParent } from 'millrace/testing';
import { IntegrationOutboxModule } from './integration-outbox/integration-outbox.module.ts';

const app = await NestFactory.create(IntegrationOutboxModule.forRoot(), {
  logger: ['fatal'],
  abortOnError: false,
});
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
tellParent({ url: await app.getUrl() });
