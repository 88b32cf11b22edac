// Starts what the page holds: a room, or the box from which a room is made.

import { listenForDialogs } from "./dialogs.js";
import { Room } from "./room.js";
import { listenForShortcuts } from "./shortcuts.js";
import { Sidebar } from "./sidebar.js";
import { rememberZone, showTimes } from "./times.js";
import { Welcome } from "./welcome.js";

const firstPrompt = document.getElementById("first-prompt");

rememberZone();
showTimes(document);
listenForDialogs();
listenForShortcuts();
new Sidebar().start();
if (document.getElementById("log")) new Room().start();
if (firstPrompt) new Welcome(firstPrompt).start();
