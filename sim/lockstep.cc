// Lock-step driver: see lockstep.h
