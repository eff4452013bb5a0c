#include "optimizer_setup.h"

#include "guard.h"
#include "handles.h"

using namespace sotto::c;  // NOLINT(google-build-using-namespace)

namespace {

template <typename Set>
sotto_status change_setup(sotto_optimizer_setup* setup, const Set& set) noexcept {
  return guarded([&] {
    need(setup, "setup");
    set();
    return SOTTO_OK;
  });
}

}  // namespace

sotto_status sotto_optimizer_setup_create(sotto_optimizer_setup** out) {
  return guarded([&] {
    need(out, "out");
    *out = new sotto_optimizer_setup();
    return SOTTO_OK;
  });
}

sotto_status sotto_optimizer_setup_set_layout(sotto_optimizer_setup* setup,
                                              const sotto_layout* layout) {
  return change_setup(setup, [&] { setup->layout = blocks_of(layout); });
}

sotto_status sotto_optimizer_setup_set_store(sotto_optimizer_setup* setup,
                                             const sotto_store* store) {
  return change_setup(setup, [&] { setup->store = store == nullptr ? nullptr : store->store; });
}

sotto_status sotto_optimizer_setup_set_interrupt(sotto_optimizer_setup* setup,
                                                 const sotto_interrupt* interrupt) {
  return change_setup(setup,
                      [&] { setup->interrupt = interrupt == nullptr ? nullptr : interrupt->flag; });
}

sotto_status sotto_optimizer_setup_set_step_rule(sotto_optimizer_setup* setup,
                                                 const sotto_step_rule* rule) {
  return change_setup(setup,
                      [&] { setup->step_rule = rule == nullptr ? nullptr : rule->function; });
}

void sotto_optimizer_setup_destroy(sotto_optimizer_setup* setup) { delete setup; }
