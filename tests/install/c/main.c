/* One node that steps by itself: enough for the library to be there, whole and of one version. */
#include <sotto.h>
#include <stdio.h>

int main(void) {
  const char* settings[] = {"nodes", "1", "lr", "0.5", NULL};
  float x[4] = {0, 0, 0, 0};
  float gradient[4] = {1, 2, 3, 4};
  sotto_optimizer* optimizer = NULL;
  sotto_status status = sotto_optimizer_create(settings, x, 4, NULL, NULL, &optimizer);
  if (status == SOTTO_OK) {
    status = sotto_optimizer_step(optimizer, gradient, 4);
  }
  if (status == SOTTO_OK) {
    status = sotto_optimizer_finish(optimizer);
  }
  sotto_optimizer_destroy(optimizer);
  if (status != SOTTO_OK) {
    fprintf(stderr, "%s: %s\n", sotto_status_name(status), sotto_last_error());
    return 1;
  }
  printf("sotto %s: x = %g %g %g %g\n", sotto_version(), x[0], x[1], x[2], x[3]);
  return x[0] == -0.5F && x[3] == -2.0F ? 0 : 1;
}
