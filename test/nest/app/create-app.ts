import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.ts';
import type { AppSettings } from './app-settings.ts';

export async function createApp(settings: AppSettings): Promise<INestApplication> {
  const app = await NestFactory.create(AppModule.with(settings), {
    logger: ['fatal'],
    abortOnError: false,
  });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  return app;
}
