// A panel that slides over the page from the right; on narrow screens it covers the page.

import { Dialog } from '@base-ui/react/dialog';
import { X } from 'lucide-react';
import { useEffect, useRef, type ReactNode } from 'react';
import { ApiError } from '../lib/api.ts';
import { Failed, Loading, NotFound } from './states.tsx';

/** The row whose details are shown. */
const shownRow =
  '#main :is(tr[aria-current=true] button, button[aria-current=true], [aria-selected=true])';

export function Sheet({
  isOpen,
  onClose,
  title,
  children,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: ReactNode;
  readonly children: ReactNode;
}) {
  const popup = useRef<HTMLDivElement>(null);
  const row = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isOpen) row.current = document.querySelector<HTMLElement>(shownRow);
  });
  return (
    <Dialog.Root
      open={isOpen}
      onOpenChange={(open) => !open && onClose()}
      modal={false}
      disablePointerDismissal
    >
      <Dialog.Portal>
        <Dialog.Popup
          ref={popup}
          // Not the button that closes: Enter after j would close what j has opened.
          initialFocus={popup}
          finalFocus={() => row.current}
          className="fixed inset-y-0 right-0 z-30 flex w-full flex-col border-l border-line bg-panel shadow-float transition-transform duration-150 outline-none data-[ending-style]:translate-x-full data-[starting-style]:translate-x-full sm:w-[34rem]"
        >
          <header className="flex min-h-12 shrink-0 items-center gap-2 border-b border-line px-4">
            <Dialog.Title className="min-w-0 flex-1 truncate text-sm font-semibold">
              {title}
            </Dialog.Title>
            <Dialog.Close
              aria-label="Close"
              className="inline-flex size-8 items-center justify-center rounded-md text-soft hover:bg-hover hover:text-text"
            >
              <X size={16} aria-hidden />
            </Dialog.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto p-4">{children}</div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** The sheet of one row, with the states of its query. */
export function DetailSheet<Data>({
  id,
  title,
  query: { data, error },
  gone,
  onClose,
  children,
}: {
  /** Empty: closed. */
  readonly id: string;
  readonly title: string;
  readonly query: { readonly data: Data | undefined; readonly error: Error | null };
  /** Why there may be nothing with this id. */
  readonly gone: string;
  readonly onClose: () => void;
  readonly children: (data: Data) => ReactNode;
}) {
  return (
    <Sheet isOpen={id !== ''} onClose={onClose} title={title}>
      {id === '' ? null : data !== undefined ? (
        <div key={id} className="flex flex-col gap-4">
          {children(data)}
        </div>
      ) : error === null ? (
        <Loading />
      ) : error instanceof ApiError && error.status === 400 ? (
        <NotFound title={`No such ${title.toLowerCase()}`}>
          Looked for “{id}”. {gone}
        </NotFound>
      ) : (
        <Failed error={error} gone={gone} />
      )}
    </Sheet>
  );
}

/** A window in the middle of the page. */
export function Modal({
  isOpen,
  onClose,
  title,
  isTitleHidden = false,
  children,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly isTitleHidden?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-backdrop transition-opacity duration-100 data-[ending-style]:opacity-0 data-[starting-style]:opacity-0" />
        <Dialog.Popup
          data-modal=""
          className="fixed top-[12vh] left-1/2 z-50 flex max-h-[76vh] w-[min(40rem,calc(100vw-1.5rem))] -translate-x-1/2 flex-col overflow-hidden rounded-xl border border-line bg-panel shadow-float outline-none"
        >
          <Dialog.Title
            className={
              isTitleHidden ? 'sr-only' : 'border-b border-line px-4 py-3 text-sm font-semibold'
            }
          >
            {title}
          </Dialog.Title>
          {children}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
