package org.apache.flink.runtime.util;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Private members of Flink's classes. Helpers look theirs up when their class is loaded: with
 * another release of Flink the first call then fails, not one in the middle of a failover.
 */
public final class Hidden {
    private Hidden() {}

    public static Field field(Class<?> owner, String name) {
        try {
            return opened(owner.getDeclaredField(name));
        } catch (NoSuchFieldException e) {
            throw new IllegalStateException(owner + " has no field " + name, e);
        }
    }

    public static Method method(Class<?> owner, String name, Class<?>... parameters) {
        try {
            return opened(owner.getDeclaredMethod(name, parameters));
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException(owner + " has no method " + name, e);
        }
    }

    @SuppressWarnings("unchecked")
    public static <T> T get(Field field, Object owner) {
        try {
            return (T) field.get(owner);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void set(Field field, Object owner, Object value) {
        try {
            field.set(owner, value);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    public static Object call(Method method, Object owner, Object... arguments) {
        try {
            return method.invoke(owner, arguments);
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    private static <T extends AccessibleObject> T opened(T member) {
        member.setAccessible(true);
        return member;
    }
}
