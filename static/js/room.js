// The room on the page: what each frame of the server does, and what the person does.

import { Actions } from "./actions.js";
import { Announcer } from "./announcer.js";
import { Asking } from "./asking.js";
import { Composer } from "./composer.js";
import { sentence } from "./i18n.js";
import { Following } from "./following.js";
import { Log } from "./log.js";
import { Path } from "./path.js";
import { refetch } from "./refetch.js";
import { Follower } from "./scroll.js";
import { RoomSettings } from "./settings.js";
import { RoomSocket } from "./socket.js";
import { Stops } from "./stops.js";
import { leaveNothingOut, showRoom } from "./heading.js";

const page = document.body.dataset;

export class Room {
  #announcer = new Announcer();
  #log = new Log({ onBlockClosed: (block) => this.#announcer.speak(block) });
  #follower = new Follower(document.getElementById("main"), this.#log.element, document.getElementById("jump"));
  #socket;
  #asking;
  #following;
  #stops;
  #composer = null;
  #path = new Path();
  #settings = new RoomSettings({ onProblem: (text) => this.#announcer.warn(text) });

  constructor() {
    const send = (frame) => this.#socket.send(frame);
    const address = `${location.origin.replace(/^http/, "ws")}/ws/rooms/${page.roomId}/?format=html`;
    this.#socket = new RoomSocket(address, {
      onFrame: (frame) => this.#frameHandlers[frame.type]?.(frame),
      onLink: (state) => this.#announcer.link(state),
    });
    this.#asking = new Asking(page.roomId, { log: this.#log, announcer: this.#announcer, send });
    this.#following = new Following(this.#log, send);
    this.#stops = new Stops(page.roomId, { send, onSettled: (outcome, end) => this.#stopSettled(outcome, end) });
    const form = document.getElementById("composer");
    const draftKey = `draft:${page.roomId}`;
    const onSend = (text) => this.#ask(() => this.#asking.prompt(text, this.#branch));
    if (form) this.#composer = new Composer(form, { draftKey, onSend, onStop: () => this.#stop() });
  }

  start() {
    this.#composer?.start();
    this.#follower.start(this.#log.message(this.#path.wantedMessageId));
    if (!this.#path.isOlder) this.#path.becomeNewest();
    this.#settings.start();
    this.#asking.start();
    this.#stops.start(this.#log.liveReplies);
    this.#listenForActions();
    this.#socket.start();
    this.#showState();
  }

  #frameHandlers = {
    hello: (frame) => this.#hello(frame),
    message: ({ message }) => this.#message(message),
    start: (frame) => this.#replyStarted(frame),
    delta: (frame) => this.#log.reply(frame.inference_id)?.applyDelta(frame),
    end: (frame) => this.#replyEnded(frame),
    stop_result: (frame) => this.#stops.result(frame),
    room: (frame) => this.#roomChanged(frame),
    error: (frame) => this.#failed(frame),
  };

  // Stops first: they must not wait behind anything.
  #hello({ last_message_id: lastMessageId }) {
    this.#stops.resend();
    if ((lastMessageId ?? "") !== this.#path.lastMessageId && refetch(lastMessageId ?? "")) return;
    this.#asking.resend();
    this.#following.start();
  }

  #message(message) {
    this.#path.lastMessageId = message.id;
    if (this.#asking.confirm(message)) this.#path.becomeNewest();
    else if (this.#path.isOlder || this.#log.message(message.id)) return this.#showState();
    // A reply comes as a message only when it was asked for before and has ended since: its text is in the page.
    else if (message.role !== "user" || !this.#log.addPrompt(message)) refetch(message.id);
  }

  #replyStarted(frame) {
    const isOurs = this.#asking.started(frame.client_id);
    this.#path.lastMessageId = frame.message_id;
    if (isOurs) this.#path.becomeNewest();
    // Whoever reads an older path is not taken away from it.
    if (this.#log.reply(frame.inference_id) || this.#path.isOlder) return;
    if (!this.#log.message(frame.parent_id)) return refetch(frame.message_id);
    this.#stops.started(this.#log.addReply(frame), frame.client_id);
    leaveNothingOut();
    this.#announcer.say(sentence("replying"));
    this.#showState();
  }

  #replyEnded(frame) {
    const reply = this.#log.reply(frame.inference_id);
    const isNews = reply?.status !== frame.status;
    reply?.end(frame);
    this.#stops.end(frame);
    if (isNews) this.#announcer.say(sentence(`reply_${frame.status}`));
    this.#showState();
  }

  #stopSettled(outcome, ending) {
    if (outcome === "already_finished" || outcome === "already_stopped") this.#announcer.say(sentence(outcome));
    if (!ending) this.#announcer.complain({ code: outcome });
    this.#showState();
  }

  #failed(error) {
    this.#stops.failed(error.client_id);
    const isKnown = this.#asking.fail(error) || this.#following.failed(error) || this.#stops.refused(error);
    if (!isKnown) this.#announcer.complain(error);
    this.#showState();
  }

  #roomChanged(frame) {
    showRoom(frame);
    this.#settings.show(frame);
  }

  #ask(action) {
    this.#announcer.clear();
    action();
    this.#follower.pin();
    this.#showState();
  }

  #stop() {
    const replies = this.#log.liveReplies;
    const waiting = this.#asking.waiting;
    for (const reply of replies) this.#stops.stop(reply);
    if (!replies.length && waiting?.isSent) this.#stops.await(waiting.client_id);
    else if (!replies.length && waiting) this.#asking.fail({ client_id: waiting.client_id, code: "cancelled" });
    this.#showState();
  }

  #listenForActions() {
    new Actions({
      log: this.#log,
      asking: this.#asking,
      composer: this.#composer,
      announcer: this.#announcer,
      follower: this.#follower,
      ask: (action) => this.#ask(action),
    }).start();
  }

  // What follows an older path has to say what it follows; else it is the newest message, whatever that is by then.
  get #branch() {
    return this.#path.isOlder ? { parent_id: this.#log.lastMessageId ?? null } : {};
  }

  #showState() {
    if (!this.#composer) return;
    const isBusy = this.#log.liveReplies.length > 0 || this.#asking.waiting;
    const state = !this.#stops.isEmpty ? "stopping" : isBusy ? "stop" : "send";
    this.#composer.state = this.#log.element.dataset.state = state;
  }
}
