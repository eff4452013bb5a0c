// What tells a process from others that have its node's name.
//
// A pure function but for what is drawn; thread-safe.
#pragma once

#include <sotto/sites/core/message.h>

namespace sotto {

/// A random number, of a process that begins without state or gives its state up.
sites::Incarnation draw_incarnation();

}  // namespace sotto
