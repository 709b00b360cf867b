// Fills a store in a separate process, so that the measured process only reads.

import { fill } from './fill.ts';
import { openMillrace } from './millrace-store.ts';
import type { Engine } from './subject-store.ts';

const [engine = 'sqlite', address = '', total = '0'] = process.argv.slice(2);
const subject = await openMillrace(engine as Engine, address);
await fill(subject, Number(total));
await subject.close();
