// The question before something is destroyed: what will happen, and two buttons.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

interface Question {
  title: string;
  text: string;
  confirm: string;
  run: () => void;
}

const question = signal<Question | null>(null);

export function askBefore(asked: Question): void {
  question.value = asked;
}

export function QuestionDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const current = question.value;
  useEffect(() => {
    if (current) dialog.current?.showModal();
  }, [current]);
  if (!current) return null;
  return (
    <dialog ref={dialog} onClose={() => (question.value = null)} aria-labelledby="question-title" aria-describedby="question-text">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          current.run();
          dialog.current?.close();
        }}
      >
        <h2 id="question-title">{current.title}</h2>
        <p id="question-text">{current.text}</p>
        <div class="buttons">
          <button type="button" autofocus onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button type="submit" class="danger">
            {current.confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
