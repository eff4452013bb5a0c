#include "guard.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>
#include <sotto/optim/algorithm.h>

namespace sotto::c {
namespace {

thread_local std::string last_error;

sotto_status status_of(Fault fault) {
  switch (fault) {
    case Fault::none:
      return SOTTO_OK;
    case Fault::malformed:
      return SOTTO_MALFORMED;
    case Fault::unexpected:
      return SOTTO_UNEXPECTED;
    case Fault::non_finite:
      return SOTTO_NON_FINITE;
    case Fault::peer_lost:
      return SOTTO_PEER_LOST;
    case Fault::deadline:
      return SOTTO_DEADLINE;
    case Fault::io:
      return SOTTO_IO;
    case Fault::budget:
      return SOTTO_BUDGET;
    case Fault::ended:
      return SOTTO_ENDED;
    case Fault::stopped:
      return SOTTO_STOPPED;
    case Fault::backlog:
      break;  // only channels of sites have it, and no function of C leads to them
  }
  return SOTTO_INTERNAL;
}

}  // namespace

std::string ArgumentSpelling::mention(std::string_view setting, std::string_view value) const {
  return value.empty() ? std::string(setting) : fmt::format("{}=\"{}\"", setting, value);
}

sotto_status fail(sotto_status status, std::string_view message) {
  last_error = printable(message);
  return status;
}

sotto_status outcome(const Status& status) {
  return status.ok() ? SOTTO_OK : fail(status_of(status.fault()), status.message());
}

sotto_status caught() noexcept {
  try {
    try {
      throw;
    } catch (const Stopped& error) {
      return fail(SOTTO_STOPPED, error.what());
    } catch (const Shortage& error) {
      return fail(SOTTO_IO, error.what());
    } catch (const Error& error) {
      return fail(SOTTO_REFUSED, error.render(ArgumentSpelling()));
    } catch (const std::bad_alloc&) {
      last_error.clear();  // the message must not need memory
      last_error = "no memory";
      return SOTTO_NO_MEMORY;
    } catch (const std::exception& error) {
      return fail(SOTTO_INTERNAL, error.what());
    } catch (...) {
      return fail(SOTTO_INTERNAL, "an exception of unknown kind");
    }
  } catch (...) {
    return SOTTO_NO_MEMORY;
  }
}

void need(const void* pointer, std::string_view what) {
  if (pointer == nullptr) {
    throw Error(what, "a null pointer is refused");
  }
}

std::span<float> model_at(float* parameters, std::size_t count) {
  const auto model = span_at(parameters, count, "parameters");
  if (model.empty() || model.size() > kMostDimension) {
    refuse("count", fmt::to_string(count), fmt::format("1 to {} would do", kMostDimension));
  }
  return model;
}

char* copy_for_caller(std::string_view bytes) {
  char* copy = static_cast<char*>(std::malloc(bytes.size() + 1));
  if (copy == nullptr) {
    throw std::bad_alloc();
  }
  std::memcpy(copy, bytes.data(), bytes.size());
  copy[bytes.size()] = '\0';
  return copy;
}

sotto_status give(std::string_view text, char** out) {
  *out = copy_for_caller(text);
  return SOTTO_OK;
}

Turn::Turn(std::atomic_flag& busy, std::string_view what) : busy_(busy) {
  if (busy_.test_and_set(std::memory_order_acquire)) {
    throw Error(what, "another thread is inside a call; it takes one at a time");
  }
}

}  // namespace sotto::c

const char* sotto_version() { return SOTTO_VERSION; }

const char* sotto_last_error() { return sotto::c::last_error.c_str(); }

const char* sotto_status_name(sotto_status status) {
  constexpr const char* kNames[] = {
      "ok", "refused", "malformed", "unexpected", "non_finite", "peer_lost", "deadline",
      "io", "budget",  "too_small", "no_memory",  "internal",   "ended",     "stopped"};
  const bool known = status >= SOTTO_OK && static_cast<std::size_t>(status) < std::size(kNames);
  return known ? kNames[status] : "unknown";
}

void sotto_free(void* given) { std::free(given); }
