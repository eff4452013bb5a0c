/* sotto.h is C99, and every function can be linked from C. */
#include <sotto.h>

typedef void (*function)(void);

static const function kAll[] = {
    (function)sotto_version,
    (function)sotto_last_error,
    (function)sotto_status_name,
    (function)sotto_free,
    (function)sotto_list,
    (function)sotto_layout_create,
    (function)sotto_layout_add,
    (function)sotto_layout_destroy,
    (function)sotto_store_create,
    (function)sotto_store_destroy,
    (function)sotto_optimizer_create,
    (function)sotto_optimizer_destroy,
    (function)sotto_interrupt_create,
    (function)sotto_interrupt_raise,
    (function)sotto_interrupt_destroy,
    (function)sotto_optimizer_create_interruptible,
    (function)sotto_step_rule_create,
    (function)sotto_step_rule_destroy,
    (function)sotto_optimizer_create_with_rule,
    (function)sotto_optimizer_announce_settings,
    (function)sotto_optimizer_carry_along,
    (function)sotto_optimizer_take_from_node_0,
    (function)sotto_optimizer_connect,
    (function)sotto_optimizer_begin_step,
    (function)sotto_optimizer_step,
    (function)sotto_optimizer_set_learning_rate,
    (function)sotto_optimizer_ask_to_stop,
    (function)sotto_optimizer_interrupt,
    (function)sotto_optimizer_mean,
    (function)sotto_optimizer_evaluated,
    (function)sotto_optimizer_give_up,
    (function)sotto_optimizer_drain,
    (function)sotto_optimizer_finish,
    (function)sotto_optimizer_finish_with_mean,
    (function)sotto_optimizer_round,
    (function)sotto_optimizer_warning_count,
    (function)sotto_optimizer_report,
    (function)sotto_optimizer_save,
    (function)sotto_optimizer_load,
    (function)sotto_optimizer_save_file,
    (function)sotto_optimizer_load_file,
    (function)sotto_compressor_create,
    (function)sotto_compressor_destroy,
    (function)sotto_compressor_max_bytes,
    (function)sotto_compressor_encode,
    (function)sotto_compressor_decode_add,
    (function)sotto_compressor_describe,
    (function)sotto_topology_create,
    (function)sotto_topology_destroy,
    (function)sotto_topology_size,
    (function)sotto_topology_weights,
    (function)sotto_site_create,
    (function)sotto_site_destroy,
    (function)sotto_site_connect,
    (function)sotto_site_step,
    (function)sotto_site_relay,
    (function)sotto_site_evaluated,
    (function)sotto_site_finish,
    (function)sotto_site_stop,
    (function)sotto_site_over,
    (function)sotto_site_round,
    (function)sotto_site_next_step,
    (function)sotto_site_report,
    (function)sotto_site_events,
    (function)sotto_simulate,
    (function)sotto_plan,
};

int sotto_c_functions(void);

int sotto_c_functions(void) {
  int count = 0;
  for (size_t i = 0; i < sizeof(kAll) / sizeof(kAll[0]); ++i) {
    count += kAll[i] != 0;
  }
  return count;
}
