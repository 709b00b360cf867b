// Fills a store from a process of its own, so that the one whose memory is measured has only read.

import { fill } from './fill.ts';
import { openMillrace } from './millrace-store.ts';
import type { Engine } from './subject-store.ts';

const [engine = 'sqlite', place = '', total = '0'] = process.argv.slice(2);
const subject = await openMillrace(engine as Engine, place);
await fill(subject, Number(total));
await subject.close();
