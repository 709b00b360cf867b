// The console inside of a NestJS application, which runs on Express, under a path of that application.

import assert from 'node:assert/strict';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { Controller, Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Browser } from 'playwright-core';
import { launchBrowser, openConsole } from './console-rig.ts';

class Greeting {
  greet(): string {
    return 'hello';
  }
}
const greet = Object.getOwnPropertyDescriptor(Greeting.prototype, 'greet');
if (greet !== undefined) Get('hello')(Greeting.prototype, 'greet', greet);
Controller()(Greeting);

describe('the console mounted in NestJS', () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser.close());

  test('signs in, reads, follows live and changes, under the path of the application', async () => {
    await using rig = await openConsole(browser);
    await rig.api.fail('core');
    const app = await NestFactory.create(
      { module: Greeting, controllers: [Greeting] },
      { logger: false },
    );
    const { handle, upgrade } = rig.api.server;
    app.use('/ops', handle);
    const server = app.getHttpServer() as Server;
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      if (request.url?.startsWith('/ops/') !== true) return socket.destroy();
      request.url = request.url.slice('/ops'.length);
      return upgrade(request, socket, head);
    });
    await app.listen(0, '127.0.0.1');
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      assert.equal(await (await fetch(`${url}/hello`)).text(), 'hello');
      await rig.api.platform.tokens.create({ name: 'admin', scopes: ['admin'] });
      const { code } = await rig.api.platform.tokens.createLink('admin');
      await using visit = await rig.visit({ scope: undefined });
      const { page } = visit;
      await page.goto(`${url}/ops/console/#link=${code}`);
      await page.getByRole('status').getByText('Live').waitFor();
      await page.getByText('1 dead letter').waitFor();
      await page.getByRole('link', { name: 'Subscriptions' }).click();
      await page.getByRole('button', { name: 'sub:banking:alarm:v1' }).click();
      await page.getByRole('button', { name: 'Pause', exact: true }).click();
      await page.getByRole('row', { name: /alarm:v1 paused/ }).waitFor();
      await page.goto(`${url}/ops/console/events?live=true`);
      await page.getByRole('status').getByText('Live').waitFor();
      await rig.append('order.placed.v1');
      await page.getByRole('option', { name: /order\.placed\.v1/ }).waitFor();
    } finally {
      await app.close();
    }
  });
});
